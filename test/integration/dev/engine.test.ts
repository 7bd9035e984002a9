import t, { type Test } from 'tap';
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import {
  engineAnswers,
  engineGet,
  engineRequest,
  parseEngineHost,
  type EngineAddress,
} from '../../../dev/servers/engine-api.ts';
import { deletionOf, mountsBelow } from '../../../dev/servers/engine-sweep.ts';
import { findEngine, startPrivateEngine, type PrivateEngine } from '../../../dev/servers/engine.ts';
import { allProcesses } from '../../../dev/process/proc.ts';
import { sharedEngine, sharedRegistry, skipWithoutPrivateEngine } from '../../support/servers.ts';
import { demoImage, pushDemoImage, pushTestImage, startRegistry } from '../../../dev/servers/registry.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { until } from '../../support/until.ts';

const deadlineMs = 60_000;

interface Container {
  readonly Id: string;
  readonly State: { Running: boolean; ExitCode: number; Status: string; Health?: { Status: string } };
  readonly NetworkSettings: {
    Ports: Record<string, { HostPort: string }[] | null>;
    Networks: Record<string, { IPAddress: string }>;
  };
}

type Running = Pick<PrivateEngine, 'host'>;

const at = (engine: Running): EngineAddress => parseEngineHost(engine.host)!;

async function ask(engine: Running, method: 'POST' | 'DELETE', path: string, body?: unknown): Promise<string> {
  const answer = await engineRequest(at(engine), method, path, { deadlineMs, ...(body === undefined ? {} : { body }) });
  if (answer.status >= 400) throw new Error(`${method} ${path}: ${answer.status} ${answer.text}`);
  return answer.text;
}

const pull = (engine: Running, image: string): Promise<string> => {
  const [, repository = '', tag = ''] = /^(.*):([^:]+)$/.exec(image) ?? [];
  return ask(engine, 'POST', `/images/create?fromImage=${encodeURIComponent(repository)}&tag=${tag}`);
};

async function run(engine: Running, name: string, body: object): Promise<void> {
  await ask(engine, 'POST', `/containers/create?name=${name}`, body);
  await ask(engine, 'POST', `/containers/${name}/start`);
}

const inspect = (engine: Running, name: string): Promise<Container> =>
  engineGet<Container>(at(engine), `/containers/${name}/json`, deadlineMs);

const addressOf = async (engine: Running, name: string, network: string): Promise<string> =>
  (await inspect(engine, name)).NetworkSettings.Networks[network]?.IPAddress ?? '';

/** The output of a command in a running container, without the stream headers of the Engine API. */
async function exec(engine: Running, name: string, command: string): Promise<string> {
  const body = { AttachStdout: true, AttachStderr: true, Tty: true, Cmd: ['sh', '-c', command] };
  const made = JSON.parse(await ask(engine, 'POST', `/containers/${name}/exec`, body)) as { Id: string };
  return ask(engine, 'POST', `/exec/${made.Id}/start`, { Tty: true });
}

async function stack(t: Test, dir: string): Promise<{ engine: PrivateEngine; registry: string; dir: string }> {
  const [engine, registry] = await Promise.all([
    startPrivateEngine({ dir: join(dir, 'engine'), firewall: false, throwaway: true }),
    startRegistry({ folder: join(dir, 'registry') }),
  ]);
  t.teardown(() => Promise.all([engine.stop(), registry.stop()]));
  return { engine, registry: registry.address, dir };
}

const checkNothingLeft = (t: Test, engine: PrivateEngine, dir: string): void => {
  t.same(mountsBelow(readFileSync('/proc/self/mountinfo', 'utf8'), dir), [], 'no mounts');
  const naming = allProcesses().filter(({ pid }) => {
    try {
      return readFileSync(`/proc/${pid}/cmdline`, 'utf8').includes(engine.socketPath.replace('/docker.sock', '/'));
    } catch {
      return false;
    }
  });
  t.same(naming, [], 'no processes');
};

t.test('a private engine', { skip: skipWithoutPrivateEngine }, async (t) => {
  const { engine, registry, dir } = await stack(t, temporaryFolder(t));
  await pushDemoImage(registry);
  const image = `${registry}/${demoImage.repository}:${demoImage.tag}`;
  await pull(engine, image);
  await ask(engine, 'POST', '/networks/create', { Name: 'n', Driver: 'bridge' });

  t.test('runs the demo image, which logs, serves a page and stops at once', async (t) => {
    await run(engine, 'demo', {
      Image: image,
      Env: ['GREETING=good morning'],
      ExposedPorts: { '8080/tcp': {} },
      HostConfig: { NetworkMode: 'n', PortBindings: { '8080/tcp': [{ HostIp: '127.0.0.1', HostPort: '' }] } },
    });
    const port = (await inspect(engine, 'demo')).NetworkSettings.Ports['8080/tcp']?.[0]?.HostPort;
    const page = await until('the page', () =>
      fetch(`http://127.0.0.1:${port}/`).then(
        (answer) => answer.text(),
        () => undefined,
      ),
    );
    t.match(page, /Ahoy from a Longshore container/);
    const logs = await until('two lines', async () => {
      const { text } = await engineRequest(at(engine), 'GET', '/containers/demo/logs?stdout=1', { deadlineMs });
      return text.includes('line 2') ? text : undefined;
    });
    t.match(logs, /Ahoy from Longshore: good morning/);
    await ask(engine, 'POST', '/containers/demo/stop?t=10');
    t.equal((await inspect(engine, 'demo')).State.ExitCode, 0, 'it exits within the grace period, before a kill');
  });

  t.test('runs test images with their own command, user, environment and health check', async (t) => {
    const digest = await pushTestImage(registry, {
      repository: 'test/custom',
      tag: 'a',
      entrypoint: ['sh', '-c'],
      cmd: ['id -u; echo $COLOUR; touch /tmp/up; sleep 100'],
      env: { COLOUR: 'blue' },
      user: '65534',
      healthcheck: { command: 'test -e /tmp/up', intervalMs: 200, timeoutMs: 1_000, retries: 3 },
    });
    t.match(digest, /^sha256:[0-9a-f]{64}$/);
    await ask(engine, 'POST', `/images/create?fromImage=${encodeURIComponent(`${registry}/test/custom@${digest}`)}`);
    await run(engine, 'custom', { Image: `${registry}/test/custom@${digest}`, HostConfig: { NetworkMode: 'none' } });
    await until('health', async () =>
      (await inspect(engine, 'custom')).State.Health?.Status === 'healthy' ? true : undefined,
    );
    const { text } = await engineRequest(at(engine), 'GET', '/containers/custom/logs?stdout=1', { deadlineMs });
    t.match(text, /65534\n[^]*blue/);
    // It ignores SIGTERM, so each later stop would wait for its grace period.
    await ask(engine, 'DELETE', '/containers/custom?force=1');
  });

  t.test('enforces the memory and CPU limits of containers', async (t) => {
    await run(engine, 'limited', {
      Image: image,
      HostConfig: {
        NetworkMode: 'none',
        Memory: 32 * 1024 * 1024,
        MemorySwap: 32 * 1024 * 1024,
        NanoCpus: 250_000_000,
      },
    });
    const limits = await exec(
      engine,
      'limited',
      'cat /sys/fs/cgroup/memory/memory.limit_in_bytes /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/memory.max /sys/fs/cgroup/cpu.max 2>/dev/null',
    );
    t.match(limits, /33554432/);
    t.match(limits, /25000/);
    await ask(engine, 'POST', '/containers/create?name=greedy', {
      Image: image,
      Cmd: ['sh', '-c', 'x=$(yes | head -c 60000000); echo ${#x}'],
      HostConfig: { NetworkMode: 'none', Memory: 16 * 1024 * 1024, MemorySwap: 16 * 1024 * 1024 },
    });
    await ask(engine, 'POST', '/containers/greedy/start');
    const ended = await until('the kill', async () => {
      const { State } = await inspect(engine, 'greedy');
      return State.Running ? undefined : State;
    });
    t.equal(ended.ExitCode === 0, false, 'a container that exceeds its memory limit is killed');
    await ask(engine, 'DELETE', '/containers/limited?force=1');
  });

  t.test('finds its containers, stopped, after a kill and a restart', async (t) => {
    await run(engine, 'survivor', { Image: image, HostConfig: { NetworkMode: 'n' } });
    await engine.kill9();
    t.notOk(await engineAnswers(at(engine), 500));
    await engine.start();
    t.equal(
      (await inspect(engine, 'survivor')).State.Running,
      false,
      'the container has ended when the engine is back',
    );
    await ask(engine, 'POST', '/containers/survivor/start');
    t.equal((await inspect(engine, 'survivor')).State.Running, true);
  });

  t.test('answers nothing while paused, and continues when resumed', async (t) => {
    engine.pause();
    // The threads of a process stop one by one, so the engine may still answer at first.
    await until('silence', async () => ((await engineAnswers(at(engine), 500)) ? undefined : true));
    engine.resume();
    t.ok(await engineAnswers(at(engine), deadlineMs));
    t.equal((await inspect(engine, 'survivor')).State.Running, true);
  });

  t.test('finds its containers after a stop and a restart', async (t) => {
    await engine.server().stop();
    await engine.start();
    t.equal((await inspect(engine, 'survivor')).State.Running, false);
  });

  t.test('refuses a second engine on the same folder', async (t) => {
    await t.rejects(
      startPrivateEngine({ dir: join(dir, 'engine'), firewall: false, throwaway: true }),
      /another process runs an engine/,
    );
    t.ok(await engineAnswers(at(engine), deadlineMs));
  });

  t.test('leaves no mounts or processes when it stops', async (t) => {
    await ask(engine, 'POST', '/containers/survivor/start');
    await engine.stop();
    checkNothingLeft(t, engine, dir);
  });
});

t.test('two private engines run side by side', { skip: skipWithoutPrivateEngine }, async (t) => {
  const folder = temporaryFolder(t);
  const both = await Promise.all(['one', 'two'].map((name) => stack(t, join(folder, name))));
  for (const { engine, registry } of both) {
    await pushDemoImage(registry);
    await pull(engine, `${registry}/${demoImage.repository}:${demoImage.tag}`);
    await ask(engine, 'POST', '/networks/create', { Name: 'same-name', Driver: 'bridge' });
    await run(engine, 'same-name', {
      Image: `${registry}/${demoImage.repository}:${demoImage.tag}`,
      HostConfig: { NetworkMode: 'same-name' },
    });
  }
  const addresses = await Promise.all(both.map(({ engine }) => addressOf(engine, 'same-name', 'same-name')));
  t.ok(addresses[0] && addresses[1] && addresses[0] !== addresses[1], `${addresses.join(' and ')} differ`);
  for (const { engine, dir } of both) {
    await engine.stop();
    checkNothingLeft(t, engine, dir);
  }
});

/**
 * True if the kernel's firewall sees traffic that crosses a bridge. If not, Docker cannot isolate
 * the containers of one network.
 */
const bridgesAreFiltered = (): boolean => {
  try {
    return readFileSync('/proc/sys/net/bridge/bridge-nf-call-iptables', 'utf8').trim() === '1';
  } catch {
    return false;
  }
};

t.test(
  'containers of a network without inter-container connectivity do not reach each other',
  { skip: bridgesAreFiltered() ? false : 'br_netfilter is off' },
  async (t) => {
    const engine = { host: await sharedEngine(t) };
    const image = `${await sharedRegistry(t)}/${demoImage.repository}:${demoImage.tag}`;
    const reaches = async (from: string, address: string): Promise<boolean> =>
      (await exec(engine, from, `printf 'GET / HTTP/1.0\\r\\n\\r\\n' | nc -w 2 ${address} 8080`)).includes('Ahoy');
    const unique = randomBytes(4).toString('hex');
    const [closed, open] = [`closed-${unique}`, `open-${unique}`];
    const icc = (on: boolean): object => ({ 'com.docker.network.bridge.enable_icc': String(on) });

    await pull(engine, image);
    for (const [network, on] of [
      [closed, false],
      [open, true],
    ] as const) {
      await ask(engine, 'POST', '/networks/create', { Name: network, Driver: 'bridge', Options: icc(on) });
      t.teardown(() => ask(engine, 'DELETE', `/networks/${network}`));
    }
    const place = async (network: string, which: string): Promise<string> => {
      const name = `${network}-${which}`;
      await run(engine, name, { Image: image, HostConfig: { NetworkMode: network } });
      t.teardown(() => ask(engine, 'DELETE', `/containers/${name}?force=1`));
      return name;
    };
    const [closedA, closedB] = [await place(closed, 'a'), await place(closed, 'b')];
    const [openA, openB] = [await place(open, 'a'), await place(open, 'b')];
    const openAddress = await addressOf(engine, openB, open);
    await until('containers of the open network reach each other', async () =>
      (await reaches(openA, openAddress)) ? true : undefined,
    );
    const closedAddress = await addressOf(engine, closedB, closed);
    t.notOk(await reaches(closedA, closedAddress), 'inside the closed network');
    t.notOk(await reaches(openA, closedAddress), 'from another network');
  },
);

t.test('an engine of DOCKER_HOST that does not answer is an error', async (t) => {
  await t.rejects(findEngine({ DOCKER_HOST: 'unix:///nonexistent/docker.sock' }), /DOCKER_HOST names unix:/);
  await t.rejects(findEngine({ DOCKER_HOST: 'ssh://somewhere' }), /DOCKER_HOST names ssh:/);
});

t.test('DOCKER_HOST is parsed', (t) => {
  const rows: [string, EngineAddress | undefined][] = [
    ['unix:///run/docker.sock', { kind: 'unix', socketPath: '/run/docker.sock' }],
    ['tcp://127.0.0.1:2375', { kind: 'tcp', host: '127.0.0.1', port: 2375 }],
    ['tcp://localhost:2375/', { kind: 'tcp', host: 'localhost', port: 2375 }],
    ['unix://', undefined],
    ['npipe:////./pipe/docker', undefined],
  ];
  for (const [host, address] of rows) t.same(parseEngineHost(host), address, host);
  t.end();
});

t.test('the clean-up finds the mounts and rules of an engine', (t) => {
  const mountinfo = [
    '42 27 254:0 /x /s/data rw shared:1 - ext4 /dev/vda rw',
    '46 42 0:39 / /s/data/overlay2/a\\040b/merged rw - overlay overlay rw',
    '47 42 0:39 / /s/database rw - overlay overlay rw',
  ].join('\n');
  t.same(mountsBelow(mountinfo, '/s/data'), ['/s/data/overlay2/a b/merged', '/s/data']);
  t.same(deletionOf('-A FORWARD -i br-1 ! -o br-1 -j ACCEPT', 'br-1'), [
    '-D',
    'FORWARD',
    '-i',
    'br-1',
    '!',
    '-o',
    'br-1',
    '-j',
    'ACCEPT',
  ]);
  t.equal(deletionOf('-A FORWARD -i br-12 -j ACCEPT', 'br-1'), undefined);
  t.equal(deletionOf('-P FORWARD DROP', 'br-1'), undefined);
  t.end();
});
