/** Findings of the doctor about engines, old and new, and about engines that do not answer. */
import t from 'tap';
import { askEngine, engineFault, judgeEngine, type EngineInfo } from '../../../host-agent/doctor/engine.ts';
import type { DaemonSettings } from '../../../host-agent/doctor/daemon.ts';
import { EngineError, type EngineFault } from '../../../host-agent/docker/errors.ts';
import { createTransport, parseEngineAddress, type EngineAddress } from '../../../host-agent/docker/transport.ts';
import { simulatedEngine } from '../support/simulated-engine.ts';

const good: EngineInfo = {
  Driver: 'overlay2',
  CgroupVersion: '2',
  CgroupDriver: 'systemd',
  LoggingDriver: 'json-file',
  SecurityOptions: ['name=seccomp,profile=builtin', 'name=cgroupns'],
  LiveRestoreEnabled: true,
  DockerRootDir: '/var/lib/docker',
  Architecture: 'x86_64',
  MemoryLimit: true,
  CpuCfsQuota: true,
  PidsLimit: true,
  Plugins: { Log: ['json-file', 'local'] },
};
const tuned: DaemonSettings = { concurrentDownloads: 1024, userlandProxy: false, source: '/etc/docker/daemon.json' };
const judged = (info: Partial<EngineInfo>, daemon = tuned) =>
  judgeEngine(
    {
      version: 'docker 28, API 1.51',
      info: { ...good, ...info },
      published: new Set(),
      networks: [],
      hasFigures: true,
      shims: [],
    },
    daemon,
  );
const troubles = (info: Partial<EngineInfo>, daemon = tuned) =>
  judged(info, daemon)
    .filter(({ verdict }) => verdict !== 'ok')
    .map(({ check, verdict }) => `${verdict} ${check}`);

t.test('an engine as it should be', (t) => {
  t.same(troubles({}), []);
  t.match(judged({})[0], { check: 'engine', says: /docker 28, API 1\.51/ });
  t.end();
});

const cases: readonly [
  name: string,
  info: Partial<EngineInfo>,
  expected: string[],
  daemon?: Partial<DaemonSettings>,
][] = [
  ['the driver vfs', { Driver: 'vfs' }, ['warn storage']],
  ['a driver that newer engines dropped', { Driver: 'devicemapper' }, ['warn storage']],
  ['the image store of containerd', { Driver: 'overlayfs' }, []],
  ['cgroup v1 with all controllers', { CgroupVersion: '1', CgroupDriver: 'cgroupfs' }, []],
  ['cgroup v1 without limits', { CgroupVersion: '1', MemoryLimit: false, PidsLimit: false }, ['fail cgroups']],
  ['a rootless engine', { SecurityOptions: ['name=seccomp,profile=builtin', 'name=rootless'] }, ['warn rootless']],
  [
    'rootless without cgroups',
    { SecurityOptions: ['name=seccomp', 'name=rootless'], CgroupDriver: 'none' },
    ['fail cgroups', 'warn rootless'],
  ],
  ['no seccomp', { SecurityOptions: null }, ['warn seccomp']],
  ['another architecture', { Architecture: 'riscv64' }, ['fail architecture']],
  ['no live-restore', { LiveRestoreEnabled: false }, ['warn live-restore']],
  ['no log driver json-file', { Plugins: { Log: ['journald'] } }, ['fail log driver']],
  ['an engine that says little', { Plugins: {}, SecurityOptions: ['name=seccomp'] }, []],
  ['three downloads at a time', {}, ['warn max-concurrent-downloads'], { concurrentDownloads: 3 }],
  ['a proxy for each port', {}, ['warn userland-proxy'], { userlandProxy: true }],
  ['an engine on another machine', {}, ['warn daemon.json'], { source: undefined }],
];
for (const [name, info, expected, daemon] of cases) {
  t.test(name, (t) => {
    t.same(troubles(info, { ...tuned, ...daemon }), expected);
    for (const { verdict, remedy } of judged(info)) t.equal(remedy !== undefined, verdict !== 'ok', 'says what to do');
    t.end();
  });
}

t.test('an engine that has no figures of its containers', (t) => {
  const facts = { version: '', info: good, published: new Set<number>(), networks: [], shims: [] };
  const found = (hasFigures: boolean | undefined) =>
    judgeEngine({ ...facts, hasFigures }, tuned).filter(({ check }) => check === 'figures');
  t.match(found(false), [{ verdict: 'warn', says: /`docker stats` is empty/, remedy: /mountinfo/ }]);
  t.match(found(true), [{ verdict: 'ok' }]);
  t.same(found(undefined), [], 'no container runs');
  t.end();
});

t.test('an engine that answers, in both ends of the API', async (t) => {
  const engine = await simulatedEngine(t);
  const transport = createTransport(parseEngineAddress(engine.host) as EngineAddress, () => {});
  t.teardown(() => transport.close());
  const labels = { 'longshore.host': 'h1' };
  t.match(await askEngine(transport, labels, false), {
    version: 'docker 20.10.24, API 1.41',
    info: { Architecture: 'x86_64' },
  });
  engine.intercept(({ path }) =>
    path === '/version'
      ? { status: 200, body: { Version: '29.0.0', ApiVersion: '1.52', MinAPIVersion: '1.44' } }
      : undefined,
  );
  t.match(await askEngine(transport, undefined, false), { version: 'docker 29.0.0, API 1.51', networks: [] });
  engine.intercept(({ path }) =>
    path === '/version'
      ? { status: 200, body: { Version: '19.3.0', ApiVersion: '1.40', MinAPIVersion: '1.12' } }
      : undefined,
  );
  const error: unknown = await askEngine(transport, undefined, false).catch((each: unknown) => each);
  const address = parseEngineAddress(engine.host) as EngineAddress;
  t.match(engineFault(error, address), { verdict: 'fail', says: /API 1\.12 to 1\.40, the agent 1\.41 to 1\.51/ });
  t.ok(
    engine.calls().every(({ method }) => method === 'GET'),
    'changes nothing',
  );
});

t.test('engines that give no answer', (t) => {
  const address: EngineAddress = { kind: 'unix', socketPath: '/run/docker.sock' };
  const fault = (kind: EngineFault, code?: string) =>
    engineFault(new EngineError('version', kind, 'detail', Object.assign(new Error('cause'), { code })), address);
  const unreachable = { kind: 'unreachable' } as const;
  t.match(fault(unreachable, 'EACCES'), { says: /may not use the socket/, remedy: /group docker/ });
  t.match(fault(unreachable, 'ENOENT'), { says: /there is no socket \/run\/docker\.sock/ });
  t.match(fault(unreachable, 'ECONNREFUSED'), { says: /nothing listens/ });
  t.match(fault({ kind: 'deadline', ms: 1 }), { says: /does not answer/, remedy: /full disk/ });
  t.match(fault({ kind: 'refused', status: 500 }), { says: /refuses: detail/ });
  t.match(engineFault(new Error('odd'), address), { verdict: 'fail', says: /odd/ });
  t.end();
});
