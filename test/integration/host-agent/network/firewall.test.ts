/**
 * The agent's firewall on a real engine: the agent sets it, checks it from inside a container,
 * repairs it, and reports a fault where it cannot set it.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import t, { type Test } from 'tap';
import { pathWith } from '../../../../dev/fetch/wrappers.ts';
import { removeFirewall } from '../../../../dev/servers/firewall.ts';
import { run } from '../../../../dev/process/run.ts';
import { toolHere } from '../../../../dev/fetch/tools.ts';
import { firewallTable } from '../../../../host-agent/network/firewall-rules.ts';
import type { ContainerId } from '../../../../schemas/ids.ts';
import { temporaryFolder } from '../../../support/folder.ts';
import { canStartEngine } from '../../../support/servers.ts';
import { inCi, skipWithoutTools } from '../../../support/tools.ts';
import { host } from '../../../host-agent/support/control-plane-state.ts';
import { startRig, steady, type Rig } from '../../../host-agent/support/rig.ts';
import { until } from '../../../support/until.ts';

t.setTimeout(240_000);
const skip = canStartEngine || inCi ? await skipWithoutTools('nft') : 'an agent that sets rules needs Linux and root';

/** A service of the host on all its addresses. */
async function startService(t: Test): Promise<number> {
  const server = createServer((_, response) => response.end('of the host'));
  await new Promise<void>((resolve) => server.listen(0, '0.0.0.0', resolve));
  t.teardown(() => server.close());
  return (server.address() as AddressInfo).port;
}

/** True if a container can connect. */
async function connects({ engine }: Rig, id: ContainerId, host: string, port: number): Promise<boolean> {
  const { Id } = await engine.only(id);
  const command = ['nc', '-w', '3', host, String(port), '-e', 'true'];
  const made = await engine.call('POST', `/containers/${Id}/exec`, { Cmd: command, AttachStdout: true });
  const { Id: exec } = JSON.parse(made.text) as { Id: string };
  await engine.call('POST', `/exec/${exec}/start`, { Detach: false, Tty: false });
  const { ExitCode } = JSON.parse((await engine.call('GET', `/exec/${exec}/json`)).text) as { ExitCode: number };
  return ExitCode === 0;
}

t.test('an agent with the right to set rules', { skip }, async (t) => {
  const rig = await startRig(t);
  const { controlPlane, engine, agent, script } = rig;
  const nft = await toolHere('nft');
  const table = firewallTable({ cluster: controlPlane.cluster, host });
  t.teardown(() => removeFirewall(nft, table));
  const env = {
    CONTAINER_FIREWALL: 'required',
    PATH: pathWith(temporaryFolder(t), { nft }, process.env['PATH'] ?? ''),
  };
  const port = await startService(t);
  const first = agent(env);
  const web = await script('web', `httpd -p 8080 -h /etc; ${steady}`);
  const { id } = controlPlane.desire({ ...web, ports: [8080] });
  const { id: other } = controlPlane.desire(web);
  const { observation } = await controlPlane.reported(id, (item) => item.observation.status === 'running');
  await controlPlane.reported(other, (item) => item.observation.status === 'running');

  const { NetworkSettings } = await engine.networked(other);
  const { Gateway: gateway, IPAddress: address } = Object.values(NetworkSettings.Networks)[0]!;

  await t.test('reports the firewall as proved after a probe from a container', async (t) => {
    await first.logged('container_firewall_checked');
    t.match(await first.metrics(), /longshore_agent_container_firewall\{state="enforced"\} 1/);
    t.same(controlPlane.beats().at(-1)?.faults, []);
    const left = await engine.call(
      'GET',
      `/containers/json?all=1&filters=${encodeURIComponent('{"label":["longshore.probe"]}')}`,
    );
    t.notMatch(left.text, controlPlane.cluster, 'nothing is left of the probe');
  });

  const isKept = async (t: Test): Promise<void> => {
    t.notOk(await connects(rig, id, gateway, port), 'a service of the host');
    t.notOk(await connects(rig, id, address, 8080), 'another container');
  };
  await t.test(
    'containers reach neither the host nor each other; published ports are reachable from outside',
    async (t) => {
      await isKept(t);
      const answer = await fetch(`http://${observation.addresses[0]!.address}/passwd`, {
        signal: AbortSignal.timeout(30_000),
      });
      t.equal(answer.status, 200);
      t.ok(await connects(rig, id, '127.0.0.1', 8080), 'the check itself works');
    },
  );

  await t.test('deleted rules come back', async (t) => {
    await run(nft.path, ['delete', 'table', 'inet', table], { deadlineMs: 10_000, env: nft.env });
    await first.logged('container_firewall_repaired', ({ was }) => was === 'gone');
    await run(nft.path, ['flush', 'chain', 'inet', table, 'to_host'], { deadlineMs: 10_000, env: nft.env });
    await first.logged('container_firewall_repaired', ({ was }) => was === 'changed');
    await isKept(t);
  });

  await t.test('rules stay when the agent stops, as containers do', async (t) => {
    await first.kill9();
    const { code } = await run(nft.path, ['list', 'table', 'inet', table], { deadlineMs: 10_000, env: nft.env });
    t.equal(code, 0);
    await isKept(t);
  });

  await t.test('an allowance opens one port of the host', async (t) => {
    const second = agent({ ...env, CONTAINER_EGRESS_ALLOW: `${gateway}:${port}/tcp` });
    await second.logged('container_firewall_checked');
    t.ok(await connects(rig, id, gateway, port));
    t.notOk(await connects(rig, id, address, 8080));
    t.equal(await second.stop(), 0);
  });
});

t.test('an agent without the right to set rules', { skip: canStartEngine ? false : skip }, async (t) => {
  const { controlPlane, agent, script } = await startRig(t);
  const folder = temporaryFolder(t);
  mkdirSync(join(folder, 'bin'));
  // The answer of nft to a user without CAP_NET_ADMIN.
  const refusing = '#!/bin/sh\necho "Operation not permitted (you must be root)" >&2\nexit 1\n';
  writeFileSync(join(folder, 'bin/nft'), refusing, { mode: 0o755 });
  const PATH = [join(folder, 'bin'), process.env['PATH'] ?? ''].join(delimiter);
  const faultsOf = () =>
    controlPlane
      .beats()
      .at(-1)
      ?.faults?.find(({ kind }) => kind === 'container_firewall');

  const first = agent({ CONTAINER_FIREWALL: 'on', PATH });
  const { id } = controlPlane.desire(await script('steady', steady));
  await controlPlane.reported(id, (item) => item.observation.status === 'running');
  const fault = await until('a heartbeat that names the fault', faultsOf);
  t.match(fault?.message, /CAP_NET_ADMIN/, 'the fault says what to do, and the containers run');
  t.match(await first.metrics(), /longshore_agent_fault\{kind="container_firewall"\} 1/);
  t.equal(await first.stop(), 0);

  const second = agent({ CONTAINER_FIREWALL: 'required', PATH });
  const { id: kept } = controlPlane.desire(await script('steady', steady));
  const { observation } = await controlPlane.reported(kept, (item) => item.observation.reason === 'host_fault');
  t.match(observation, { status: 'backoff', message: /firewall of this host/ });
  t.equal(await second.stop(), 0);

  const third = agent({ CONTAINER_FIREWALL: 'off', PATH });
  t.match(await third.logged('container_firewall_off'), { level: 'warn', remove: /^nft delete table inet longshore_/ });
  await controlPlane.reported(kept, (item) => item.observation.status === 'running');
  t.equal(faultsOf(), undefined);
});
