/** Effects of a step on the engine, and its outcome; failures.test.ts has the texts of failures. */
import { tmpdir } from 'node:os';
import t from 'tap';
import type { ContainerBody } from '../../../../host-agent/docker/calls/containers.ts';
import type { Engine } from '../../../../host-agent/docker/engine.ts';
import type { CreateResult } from '../../../../host-agent/docker/calls/containers.ts';
import { EngineError, type EngineFault } from '../../../../host-agent/docker/errors.ts';
import { labels, networkName } from '../../../../host-agent/docker/ownership.ts';
import { createNetworkKeeper } from '../../../../host-agent/network/network.ts';
import { limits } from '../../../../schemas/limits.ts';
import { quietLog, recordingLog } from '../../../gateway/support.ts';
import { createExecutor, type ExecutorParts } from '../../../../host-agent/reconcile/execute/execute.ts';
import { container, id, owner, reference, tenant } from '../../support/decisions.ts';

const refused = (detail: string, status = 500) => new EngineError('call', { kind: 'refused', status }, detail);
const away = (fault: EngineFault = { kind: 'unreachable' }) => new EngineError('call', fault, 'no engine');
const source = { tenant, id };
const GiB = 1024 ** 3;

interface Given {
  /** Results of creates, one after another; the last stays. */
  readonly creates?: readonly (CreateResult | Error)[];
  readonly engine?: Partial<Engine>;
  readonly refusal?: string;
  readonly parts?: Partial<ExecutorParts>;
}

const next = <T>(results: T[]): T | undefined => (results.length > 1 ? results.shift() : results[0]);
const inspectionOf = (marks: Record<string, string>): Partial<Engine> => ({
  inspect: () => Promise.resolve({ Config: { Labels: marks } } as Awaited<ReturnType<Engine['inspect']>>),
});

/** An executor, and the calls that it made. */
function executor({ creates = [{ kind: 'created', id: 'd1' }], engine = {}, refusal, parts = {} }: Given = {}) {
  const calls: string[] = [];
  const bodies: ContainerBody[] = [];
  const left = [...creates];
  const call = (name: string) => () => {
    calls.push(name);
    return Promise.resolve();
  };
  const fake: Partial<Engine> = {
    networks: () => Promise.resolve([{ Id: 'n1', Name: networkName(owner), Created: '2026' }]),
    imageDetails: () => Promise.resolve({ Config: null } as Awaited<ReturnType<Engine['imageDetails']>>),
    create: (_name, body) => {
      calls.push('create');
      bodies.push(body);
      const result = next(left);
      return result instanceof Error ? Promise.reject(result) : Promise.resolve(result ?? { kind: 'no_image' });
    },
    upload: call('upload'),
    start: call('start'),
    unpause: call('unpause'),
    stop: call('stop'),
    ...engine,
  };
  const made = createExecutor({
    engine: fake as Engine,
    owner,
    pulls: { get: () => Promise.resolve('sha256:one'), leave: () => calls.push('leave') },
    logs: { drain: call('drain') } as Partial<ExecutorParts['logs']> as ExecutorParts['logs'],
    firewall: {
      cover: call('cover'),
      refusal: () => refusal,
    } as Partial<ExecutorParts['firewall']> as ExecutorParts['firewall'],
    sandboxes: undefined,
    tenantNetwork: undefined,
    ensureNetwork: createNetworkKeeper(fake as Engine, owner),
    configBytes: () => Promise.resolve(undefined),
    secretsDir: undefined,
    values: { env: () => Promise.resolve({ kind: 'env', env: {} }) },
    secretFiles: { prepare: () => Promise.resolve({ kind: 'prepared', mounts: [] }) },
    declaredFiles: { prepare: () => Promise.resolve({ kind: 'prepared', mounts: [] }) },
    volumes: { mounts: () => Promise.resolve([]), removeCopy: call('remove') },
    publishAddress: '0.0.0.0',
    capabilities: [],
    diskBytes: 10 * GiB,
    stopGraceMs: 1000,
    cpuMillis: () => 4000,
    nowMs: () => 0,
    log: quietLog,
    ...parts,
  });
  return {
    calls,
    bodies,
    quotas: () => bodies.map(({ HostConfig }) => HostConfig?.StorageOpt !== undefined),
    create: (more: Parameters<typeof container>[0] = {}) =>
      made.short({ kind: 'create', reference, imageId: 'sha256:one' }, container(more)),
    start: (prepare: boolean, more: Parameters<typeof container>[0] = {}) =>
      made.short({ kind: 'start', dockerId: 'd1', prepare, again: false }, container(more)),
    made,
  };
}

t.test('create: the firewall covers the network before the container is made', async (t) => {
  const { create, calls } = executor();
  t.same(await create(), { kind: 'done' });
  t.same(calls, ['cover', 'create']);
});

t.test('create: what keeps it from being made', async (t) => {
  const secret = { secret_refs: [{ env: 'KEY', secret: 'nowhere' }] };
  const ours = { [labels.cluster]: owner.cluster, [labels.host]: owner.host };
  const nameTaken = [{ kind: 'name_taken' }] as const;
  const image = (given: Engine['imageDetails']): Given => ({ engine: { imageDetails: given } });
  const rows: [string, Given, Parameters<typeof container>[0], object, calls: number][] = [
    ['no folder of secrets', {}, secret, { kind: 'retry', why: { reason: 'secret_missing' }, fault: 'container' }, 0],
    [
      'no such secret',
      { parts: { secretsDir: tmpdir() } },
      secret,
      { kind: 'retry', why: { message: /"nowhere"/ } },
      0,
    ],
    ['the image went', image(() => Promise.resolve(undefined)), {}, { kind: 'retry', fault: 'image_gone' }, 0],
    ['it went since', { creates: [{ kind: 'no_image' }] }, {}, { kind: 'retry', fault: 'image_gone' }, 1],
    [
      'an image that is too large to look at',
      image(() => Promise.reject(away({ kind: 'oversized' }))),
      {},
      { kind: 'failed', why: { reason: 'image_refused' } },
      0,
    ],
    [
      'an image whose configuration is too large on disk',
      { parts: { configBytes: () => Promise.resolve(limits.imageConfigBytes + 1) } },
      {},
      { kind: 'failed', why: { reason: 'image_refused', message: /has over \d+ bytes/ } },
      0,
    ],
    [
      'an image that the engine cannot use',
      image(() => Promise.resolve({ Id: 'sha256:one', Config: { Env: ['A='.padEnd(limits.imageEnvBytes + 1, 'x')] } })),
      {},
      { kind: 'failed', why: { reason: 'image_refused', message: /environment takes/ } },
      0,
    ],
    ['no firewall', { refusal: 'no rules' }, {}, { kind: 'retry', why: { message: 'no rules' }, fault: 'host' }, 0],
    [
      'an earlier create, whose answer was lost',
      { creates: nameTaken, engine: inspectionOf(ours) },
      {},
      { kind: 'changed' },
      1,
    ],
    [
      'a container of another host',
      { creates: nameTaken, engine: inspectionOf({ ...ours, [labels.host]: 'h2' }) },
      {},
      { kind: 'retry', fault: 'container', why: { message: /has the name longshore-h1-/ } },
      1,
    ],
    [
      'one that went since',
      { creates: nameTaken, engine: { inspect: () => Promise.resolve(undefined) } },
      {},
      { kind: 'retry' },
      1,
    ],
    ['an engine that is away', { creates: [away()] }, {}, { kind: 'outage' }, 1],
  ];
  for (const [name, given, more, outcome, creates] of rows) {
    const { create, calls } = executor(given);
    t.match(await create(more), outcome, name);
    t.equal(calls.filter((call) => call === 'create').length, creates, `${name}: creates`);
  }
});

t.test('create: an engine without quotas is asked for one once', async (t) => {
  const limited = { disk_bytes: GiB };
  const noQuota = refused('--storage-opt is supported only for overlay over xfs');
  const created = { kind: 'created', id: 'd1' } as const;
  const without = executor({ creates: [noQuota, created] });
  t.same(await without.create(limited), { kind: 'done' });
  t.same(await without.create(limited), { kind: 'done' });
  t.same(without.quotas(), [true, false, false]);

  const broken = executor({ creates: [noQuota, refused('no space left on device'), created] });
  t.match(await broken.create(limited), { kind: 'retry', fault: 'host' }, 'refused either way');
  t.same(await broken.create(limited), { kind: 'done' });
  t.same(broken.quotas(), [true, false, true], 'which says nothing about quotas');

  const gone = executor({ creates: [away(), created] });
  t.match(await gone.create(limited), { kind: 'outage' });
  t.same(gone.quotas(), [true], 'it may have made it');

  const undeclared = executor();
  await undeclared.create();
  t.same(undeclared.quotas(), [false], 'a limit that nobody declared is not enforced by the engine');
});

const secrets = { env: { TOKEN: { name: 'db', version: 1 } }, files: {} };
const values = { env: () => Promise.resolve({ kind: 'env' as const, env: { TOKEN: 'hunter2', A: 'of the tenant' } }) };

t.test('create: the secrets of the tenant are in the environment and in the mounts', async (t) => {
  const mount = { Type: 'bind', Source: '/run/x/0', Target: '/etc/x', ReadOnly: true } as const;
  const secretFiles = { prepare: () => Promise.resolve({ kind: 'prepared' as const, mounts: [mount] }) };
  const { create, bodies } = executor({ parts: { values, secretFiles } });
  t.same(await create({ env: { A: 'declared', B: 'b' }, secrets }), { kind: 'done' });
  t.match(bodies, [{ Env: ['A=of the tenant', 'B=b', 'TOKEN=hunter2'], HostConfig: { Mounts: [mount] } }]);
});

t.test('a secret that is missing keeps a container from being made and started', async (t) => {
  const gone = { kind: 'missing', secret: 'db', why: 'away' } as const;
  const outcome = { kind: 'retry', why: { reason: 'secret_missing', message: 'the secret "db" is missing: away' } };
  const noValue = executor({ parts: { values: { env: () => Promise.resolve(gone) } } });
  t.match(await noValue.create({ secrets }), outcome);
  const noFile = executor({ parts: { secretFiles: { prepare: () => Promise.resolve(gone) } } });
  t.match(await noFile.create({ secrets }), outcome);
  t.match(await noFile.start(false, { secrets }), outcome, 'after a reboot');
  t.same([...noValue.calls, ...noFile.calls], []);
});

t.test('no value in the words of the engine', async (t) => {
  const { create } = executor({ creates: [refused('invalid environment variable: TOKEN=hunter2')], parts: { values } });
  const outcome = await create({ secrets });
  t.match(outcome, { detail: 'invalid environment variable: TOKEN=[hidden]' });
  t.notMatch(JSON.stringify(outcome), /hunter2/);
});

t.test('start: config files go in before the first run alone', async (t) => {
  const files = { config_files: [{ path: '/etc/x', content: 'text', mode: '0644' }] };
  for (const [prepare, more, calls] of [
    [true, files, ['upload', 'start']],
    [false, files, ['start']],
    [true, {}, ['start']],
  ] as const) {
    const one = executor();
    t.same(await one.start(prepare, more as Parameters<typeof container>[0]), { kind: 'done' });
    t.same(one.calls, calls);
  }
  const open = executor({ refusal: 'no rules' });
  t.match(await open.start(true), { kind: 'retry', fault: 'host' });
  t.same(open.calls, [], 'nothing starts without a firewall');
});

t.test('start: what a refusal says about the next attempt', async (t) => {
  for (const [error, outcome] of [
    [refused('No such container: d1', 404), { kind: 'changed' }],
    [refused('network 1f not found', 404), { kind: 'retry', fault: 'remake' }],
    [refused(`task ${'4b'.repeat(32)}: already exists`), { kind: 'retry', fault: 'remake' }],
    [refused('could not find a network matching network mode', 404), { kind: 'retry', fault: 'remake' }],
    [refused('port is already allocated'), { kind: 'retry', fault: 'container', why: { reason: 'port_unavailable' } }],
    [away({ kind: 'deadline', ms: 1 }), { kind: 'outage' }],
  ] as const) {
    const { start } = executor({ engine: { start: () => Promise.reject(error) } });
    t.match(await start(false), outcome, error.detail);
  }
  const log = recordingLog();
  const left = () => Promise.reject(refused(`task ${'4b'.repeat(32)}: already exists`));
  await executor({ engine: { start: left }, parts: { log } }).start(false);
  t.match(log.events, [{ event: 'engine_left_task', fields: { remedy: /Shims that an engine left behind/ } }]);
  const bug = executor({ engine: { start: () => Promise.reject(new TypeError('a bug')) } });
  await t.rejects(bug.start(false), { message: 'a bug' }, 'what is no failure of the engine is ours');
});

t.test('limits that were changed by hand', async (t) => {
  const limited = { Memory: container().mem_bytes, NanoCpus: 500_000_000 };
  const given: object[] = [];
  const setTo = (HostConfig: object): Partial<Engine> => ({
    update: (_id, body) => Promise.resolve(void given.push(body)),
    inspect: () => Promise.resolve({ HostConfig } as Awaited<ReturnType<Engine['inspect']>>),
  });
  const set = (engine: Partial<Engine>, parts: Given['parts'] = {}) =>
    executor({ engine, parts }).made.short({ kind: 'limit', dockerId: 'd1' }, container());
  t.same(await set(setTo(limited)), { kind: 'done' });
  t.same(given, [{ ...limited, MemorySwap: limited.Memory }]);
  const byHand = { ...limited, MemorySwap: -1, PidsLimit: 5, CpuShares: 2, CpusetCpus: '0' };
  await set(setTo({ ...byHand, RestartPolicy: { Name: 'always' } }));
  const pids = { PidsLimit: limits.containerPids };
  const usual = { CpuShares: 1024, CpusetCpus: '0-3', RestartPolicy: { Name: 'no' } };
  t.same(given.at(-1), { ...limited, MemorySwap: limited.Memory, ...pids, ...usual });
  const withoutSwap = { ...limited, MemorySwap: -1, PidsLimit: null, CpuShares: 0, CpusetCpus: '' };
  t.same(
    await set(setTo(withoutSwap), { unkept: () => ['MemorySwap'] }),
    { kind: 'done' },
    'a kernel without limits of swap',
  );
  t.same(await set(setTo({ Memory: 0, NanoCpus: 500_000_000 })), { kind: 'done' }, 'a kernel without limits of memory');
  t.match(await set(setTo({ ...limited, Memory: 1 })), { kind: 'retry', why: { message: /limits/ } }, 'it says yes');
  const busy = refused('write memory.limit_in_bytes: device or resource busy');
  t.match(await set({ ...setTo(limited), update: () => Promise.reject(busy) }), { kind: 'retry', fault: 'container' });
  const hangs = () => Promise.reject(away({ kind: 'deadline', ms: 1 }));
  t.match(await set({ ...setTo(limited), update: hangs }), { kind: 'outage' });
});

t.test('a step for a container that is not desired any more does nothing: look again', async (t) => {
  const { made, calls } = executor();
  t.same(await made.short({ kind: 'create', reference, imageId: 'sha256:one' }, undefined), { kind: 'changed' });
  t.same(await made.short({ kind: 'start', dockerId: 'd1', prepare: true, again: false }, undefined), {
    kind: 'changed',
  });
  t.same(calls, []);
});

t.test('a log goes with the container that someone else removes', async (t) => {
  for (const [error, outcome] of [
    [refused('no such container', 404), { kind: 'changed' }],
    [refused('removal is in progress', 409), { kind: 'changed' }],
    [refused('disk failure'), { kind: 'retry', why: { message: /its log cannot be saved/ } }],
    [away(), { kind: 'outage' }],
  ] as const) {
    const logs = { drain: () => Promise.reject(error) } as Partial<ExecutorParts['logs']> as ExecutorParts['logs'];
    const { made } = executor({ parts: { logs } });
    t.match(await made.long({ kind: 'drain', dockerId: 'd1' }, source, undefined), outcome, error.detail);
  }
});

t.test('the other steps are one call each', async (t) => {
  const { made, calls } = executor();
  for (const step of [
    { kind: 'unpause', dockerId: 'd1' },
    { kind: 'remove', dockerId: 'd1' },
  ] as const) {
    t.same(await made.short(step, undefined), { kind: 'done' });
  }
  t.same(await made.long({ kind: 'stop', dockerId: 'd1' }, source, undefined), { kind: 'done' });
  t.same(await made.long({ kind: 'pull', reference, policy: 'always' }, source, undefined), {
    kind: 'done',
    imageId: 'sha256:one',
  });
  made.cancelPull(id);
  t.same(calls, ['unpause', 'remove', 'stop', 'leave']);
});
