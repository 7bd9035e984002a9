/**
 * An engine that can't read the cgroups of its containers: it has no figures of them, and hears of
 * no kill for want of memory. It runs in a mount namespace that lacks one of the kernel's cgroup v1
 * hierarchies, as where something has mounted one that the engine does not see.
 */
import { chmodSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { toolHere } from '../../../../dev/fetch/tools.ts';
import { startPrivateEngine, type PrivateEngine } from '../../../../dev/servers/engine.ts';
import type { Stats } from '../../../../host-agent/docker/answers.ts';
import { createTransport, parseEngineAddress, type EngineAddress } from '../../../../host-agent/docker/transport.ts';
import { askEngine, judgeEngine } from '../../../../host-agent/doctor/engine.ts';
import { unseenDaemon } from '../../../../host-agent/doctor/daemon.ts';
import { mountsIn } from '../../../../host-agent/usage/cgroups.ts';
import type { ContainerId } from '../../../../schemas/ids.ts';
import { temporaryFolder } from '../../../support/folder.ts';
import { skipWithoutPrivateEngine } from '../../../support/servers.ts';
import { until } from '../../../support/until.ts';
import { startRig, steady } from '../../../host-agent/support/rig.ts';

t.setTimeout(180_000);
const MiB = 1024 * 1024;
const hidden = mountsIn(readFileSync('/proc/self/mountinfo', 'latin1')).get('name=systemd')?.point;

async function startBlindEngine(t: Test, mount: string): Promise<PrivateEngine> {
  const dir = temporaryFolder(t);
  const dockerd = await toolHere('dockerd');
  const path = join(dir, 'dockerd');
  writeFileSync(path, `#!/bin/sh\nexec unshare -m sh -c 'umount ${mount} && exec "$@"' sh ${dockerd.path} "$@"\n`);
  chmodSync(path, 0o755);
  const engine = await startPrivateEngine({ dir, tool: { ...dockerd, path }, firewall: false, throwaway: true });
  t.teardown(() => engine.stop());
  return engine;
}

const skip = skipWithoutPrivateEngine || (hidden === undefined && 'this machine has no hierarchy of cgroup v1 to hide');

t.test('an engine that can’t read the cgroups of its containers', { skip }, async (t) => {
  const dockerd = await startBlindEngine(t, hidden ?? '');
  const { controlPlane, engine, agent, script } = await startRig(t, dockerd.host);
  const process = agent({ CONTAINER_METRICS: 'on', USAGE_INTERVAL: '300ms' });
  const ends = (id: ContainerId) =>
    controlPlane
      .reports(id)
      .map(({ observation }) => observation)
      .filter(({ exit_code }) => exit_code !== null);
  /** The first two ends of a container that is restarted. */
  const twoEnds = async (name: string, text: string) => {
    const { id } = controlPlane.desire({ ...(await script(name, text)), mem_bytes: 16 * MiB });
    await controlPlane.reported(
      id,
      ({ observation }) => observation.restart_count >= 1 && observation.exit_code !== null,
    );
    const seen = ends(id);
    controlPlane.desire({ id, desired: 'removed' });
    return seen;
  };
  const { id: up } = controlPlane.desire({
    ...(await script('holds', `held=$(head -c ${4 * MiB} /dev/zero | tr "\\0" x); ${steady}`)),
    mem_bytes: 64 * MiB,
  });
  await controlPlane.reported(up, ({ observation }) => observation.status === 'running');

  await t.test('the kernel killed its first process → oom_killed, at each end', async (t) => {
    const seen = await twoEnds('first', `x=$(head -c ${64 * MiB} /dev/zero | tr "\\0" x)`);
    t.ok(
      seen.every(({ reason, exit_code }) => reason === 'oom_killed' && exit_code === 137),
      JSON.stringify(seen),
    );
  });

  await t.test('the kernel killed another process of it → oom_killed, whatever its exit code', async (t) => {
    const seen = await twoEnds('other', `head -c ${64 * MiB} /dev/zero | tail; sleep 3; exit 3`);
    t.ok(
      seen.every(({ reason, exit_code }) => reason === 'oom_killed' && exit_code === 3),
      JSON.stringify(seen),
    );
  });

  await t.test('it failed by itself → exited', async (t) => {
    const seen = await twoEnds('fails', 'exit 4');
    t.ok(
      seen.every(({ reason }) => reason === 'exited'),
      JSON.stringify(seen),
    );
  });

  await t.test('its use is read from the kernel', async (t) => {
    const { text } = await engine.call(
      'GET',
      `/containers/${(await engine.only(up)).Id}/stats?stream=false&one-shot=true`,
    );
    t.equal((JSON.parse(text) as Stats).memory_stats.usage, undefined, 'the engine has nothing');
    const series = /^longshore_agent_container_memory_bytes\{.*\} (\d+)$/m;
    await until('its memory', async () => Number(series.exec(await process.metrics())?.[1]) > 4 * MiB || undefined);
  });

  await t.test('the doctor says so', async (t) => {
    const transport = createTransport(parseEngineAddress(dockerd.host) as EngineAddress, () => {});
    t.teardown(() => transport.close());
    const findings = judgeEngine(await askEngine(transport, undefined, true), unseenDaemon);
    t.match(
      findings.find(({ check }) => check === 'figures'),
      { verdict: 'warn', says: /the engine can’t read the figures of its containers/, remedy: /hierarch/ },
    );
  });

  t.same(controlPlane.faults(), []);
  t.equal(await process.stop(), 0);
});
