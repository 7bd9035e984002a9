/** Two private engines share a firewall: the start of one leaves the rules of the other alone. */
import { chmodSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { engineGet, engineRequest, parseEngineHost } from '../../../dev/servers/engine-api.ts';
import { gentleScript } from '../../../dev/servers/engine-firewall.ts';
import { startPrivateEngine, type PrivateEngine } from '../../../dev/servers/engine.ts';
import { demoImage, pushDemoImage, startRegistry } from '../../../dev/servers/registry.ts';
import { run } from '../../../dev/process/run.ts';
import { executablesOf, toolHere } from '../../../dev/fetch/tools.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import { testInNamespace } from '../../support/namespace.ts';
import { temporaryFolder } from '../../support/folder.ts';

const deadlineMs = 60_000;

async function ask(engine: PrivateEngine, method: 'POST' | 'DELETE', path: string, body?: unknown): Promise<string> {
  const options = { deadlineMs, ...(body === undefined ? {} : { body }) };
  const answer = await engineRequest(parseEngineHost(engine.host)!, method, path, options);
  if (answer.status >= 400) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
  return answer.text;
}

/** The firewall rules that name one of these bridges or addresses, without counters. */
async function rulesOf(names: readonly string[]): Promise<string[]> {
  const tool = await toolHere('dockerd');
  const [iptables = ''] = executablesOf(['iptables'], tool.env);
  const tables = await Promise.all(
    ['filter', 'nat'].map(async (table) => {
      const ran = await run(iptables, ['-w', '5', '-t', table, '-S'], { deadlineMs, env: tool.env });
      return ran.stdout.split('\n').map((rule) => `${table} ${rule}`);
    }),
  );
  return tables.flat().filter((rule) => names.some((name) => rule.includes(name)));
}

/** Starts an engine with two networks and a container in each; one publishes a port. */
async function startEngine(dir: string, registry: string) {
  const engine = await startPrivateEngine({ dir, firewall: true, throwaway: true });
  const reference = `${registry}/${demoImage.repository}`;
  await ask(engine, 'POST', `/images/create?fromImage=${encodeURIComponent(reference)}&tag=${demoImage.tag}`);
  const bridges: string[] = [];
  for (const name of ['left', 'right']) {
    const made = JSON.parse(await ask(engine, 'POST', '/networks/create', { Name: name, Driver: 'bridge' })) as {
      Id: string;
    };
    bridges.push(`br-${made.Id.slice(0, 12)}`);
    await ask(engine, 'POST', `/containers/create?name=${name}`, {
      Image: `${reference}:${demoImage.tag}`,
      ExposedPorts: { '8080/tcp': {} },
      HostConfig: {
        NetworkMode: name,
        PortBindings: name === 'left' ? { '8080/tcp': [{ HostIp: '127.0.0.1', HostPort: '' }] } : {},
      },
    });
    await ask(engine, 'POST', `/containers/${name}/start`);
  }
  const inspect = (name: string) =>
    engineGet<{
      NetworkSettings: {
        Networks: Record<string, { IPAddress: string }>;
        Ports: Record<string, { HostPort: string }[]>;
      };
    }>(parseEngineHost(engine.host)!, `/containers/${name}/json`, deadlineMs);
  const address = async (name: string): Promise<string> =>
    (await inspect(name)).NetworkSettings.Networks[name]?.IPAddress ?? '';
  /** True if the container `from` can load the page at the address. */
  const reaches = async (from: string, to: string): Promise<boolean> => {
    const Cmd = ['sh', '-c', `printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 2 ${to} 8080`];
    const made = JSON.parse(
      await ask(engine, 'POST', `/containers/${from}/exec`, { AttachStdout: true, Tty: true, Cmd }),
    ) as { Id: string };
    return (await ask(engine, 'POST', `/exec/${made.Id}/start`, { Tty: true })).includes('Ahoy');
  };
  const publishes = async (): Promise<boolean> => {
    const port = (await inspect('left')).NetworkSettings.Ports['8080/tcp']?.[0]?.HostPort;
    const answer = await fetch(`http://127.0.0.1:${port}/`, { signal: AbortSignal.timeout(5_000) }).catch(
      () => undefined,
    );
    return answer?.ok === true;
  };
  const waitUntilServed = async (): Promise<void> => {
    const endMs = performance.now() + deadlineMs;
    while (!(await reaches('left', '127.0.0.1')) || !(await reaches('right', '127.0.0.1')) || !(await publishes())) {
      if (performance.now() > endMs) throw new Error(`the containers of ${dir} do not serve`);
      await sleep(50);
    }
  };
  await waitUntilServed();
  // Without a userland proxy, the rule of a published port names the container's address, not a
  // bridge.
  return { engine, names: [...bridges, `${await address('left')}:`], address, reaches, publishes };
}

t.test('the iptables wrapper skips commands that flush or delete Docker’s chains', async (t) => {
  const folder = t.testdir({ "real 'one'": '#!/bin/sh\necho "$@"\n' });
  const real = join(folder, "real 'one'");
  chmodSync(real, 0o755);
  writeFileSync(join(folder, 'gentle'), gentleScript(real), { mode: 0o755 });
  const rows: [string[], string][] = [
    [['--wait', '-t', 'nat', '-F', 'DOCKER'], ''],
    [['--wait', '-t', 'filter', '-X', 'DOCKER-ISOLATION-STAGE-1'], ''],
    [['--wait', '-t', 'nat', '-F', 'OTHER'], '--wait -t nat -F OTHER\n'],
    [['--wait', '-D', 'FORWARD', '-j', 'DOCKER'], '--wait -D FORWARD -j DOCKER\n'],
    [['--wait', '-A', 'DOCKER', '-i', 'br-1', '-j', 'RETURN'], '--wait -A DOCKER -i br-1 -j RETURN\n'],
  ];
  for (const [args, output] of rows) {
    const ran = await run(join(folder, 'gentle'), args, { deadlineMs });
    t.equal(ran.code, 0);
    t.equal(ran.stdout, output, args.join(' '));
  }
});

await testInNamespace(
  {
    name: 'an engine leaves the firewall rules of another engine alone',
    file: import.meta.filename,
    tools: ['dockerd', 'docker-registry', 'busybox'],
    timeoutMs: 600_000,
  },
  async (t) => {
    const folder = temporaryFolder(t);
    const registry = await startRegistry({ folder: join(folder, 'registry') });
    t.teardown(() => registry.stop());
    await pushDemoImage(registry.address);
    const first = await startEngine(join(folder, 'first'), registry.address);
    t.teardown(() => first.engine.stop());
    const before = await rulesOf(first.names);
    t.ok(before.some((rule) => rule.includes('DOCKER-ISOLATION-STAGE')));
    t.ok(before.some((rule) => rule.includes('DNAT')));
    t.notOk(await first.reaches('left', await first.address('right')), 'the first engine’s networks are isolated');

    const second = await startEngine(join(folder, 'second'), registry.address);
    t.teardown(() => second.engine.stop());
    t.same((await rulesOf(first.names)).toSorted(), before.toSorted(), 'the first engine’s rules are unchanged');
    t.notOk(await first.reaches('left', await first.address('right')), 'its networks are still isolated');
    t.ok(await first.publishes(), 'its port is still published');
    t.notOk(await second.reaches('left', await second.address('right')), 'the second engine’s networks are isolated');
    t.notOk(await second.reaches('left', await first.address('right')), 'the two engines are isolated from each other');

    const rulesOfSecond = (await rulesOf(second.names)).toSorted();
    await first.engine.kill9();
    await first.engine.start();
    t.same(
      (await rulesOf(second.names)).toSorted(),
      rulesOfSecond,
      'a crash and a restart of the first engine change no rule of the second',
    );
    t.notOk(
      (await rulesOf(first.names)).some((rule) => rule.includes('DNAT')),
      'the first engine publishes no port, because its containers have ended',
    );
    await second.engine.stop();
    t.same(await rulesOf(second.names), [], 'a stopped engine removes its own rules');
  },
);
