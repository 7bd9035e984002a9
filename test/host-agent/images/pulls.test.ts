import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import type { Engine } from '../../../host-agent/docker/engine.ts';
import type { PullOptions } from '../../../host-agent/docker/calls/images.ts';
import { EngineError } from '../../../host-agent/docker/errors.ts';
import { createPulls, type PullsParts } from '../../../host-agent/images/pulls.ts';
import type { Login } from '../../../host-agent/secrets/values.ts';
import { RegistryError, type Permit } from '../../../host-agent/images/registries.ts';
import type { PullPolicy } from '../../../schemas/api/fields/container.ts';
import type { ContainerId, TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { PullLines } from '../../../host-agent/docker/pull-progress.ts';
import { createLog } from '../../../lib/log.ts';
import { quietLog } from '../../actors/support.ts';
import { tenant } from '../support/decisions.ts';

const usual = {
  access: { isProved: () => true, isPrivate: () => false, prove: () => true, hasRoom: () => true },
  isVouched: () => true,
  logins: (): Promise<Login> => Promise.resolve({ kind: 'none' }),
  metrics: { pull: () => undefined },
  log: quietLog,
};
const pullsOf = (engine: Engine, permit: Permit = () => Promise.resolve()) => createPulls({ ...usual, engine, permit });

/** An engine whose pulls end when the test or their signal ends them. */
function pullingEngine() {
  const pulling = new Map<string, () => void>();
  const aborted: string[] = [];
  const engine = {
    imageId: (reference: string) => Promise.resolve(pulling.has(reference) ? undefined : `id of ${reference}`),
    pull: (reference: string, signal: AbortSignal) =>
      new Promise<void>((resolve) => {
        const end = (): void => {
          pulling.delete(reference);
          resolve();
        };
        pulling.set(reference, end);
        signal.addEventListener('abort', () => {
          aborted.push(reference);
          end();
        });
      }),
  } as unknown as Engine;
  return { engine, pulling, aborted };
}

t.test('containers share one pull of an image, which ends when none waits for it', async (t) => {
  const { engine, pulling, aborted } = pullingEngine();
  const all = pullsOf(engine);
  const ids = ['a', 'b', 'c'] as ContainerId[];
  const ask = () => Promise.all(ids.map((each) => all.get('r/x:1', 'always', { tenant, id: each })));
  const first = ask();
  await delay(0);
  t.same([...pulling.keys()], ['r/x:1']);
  pulling.get('r/x:1')?.();
  t.same(await first, Array(3).fill('id of r/x:1'));
  const left = ask();
  await delay(0);
  ids.slice(1).forEach((each) => all.leave(each));
  t.same(aborted, [], 'one still waits');
  all.leave('a' as ContainerId);
  await left;
  t.same(aborted, ['r/x:1']);
});

t.test('a pull that is cancelled while it waits takes no place', async (t) => {
  const { engine, pulling } = pullingEngine();
  const all = pullsOf(engine);
  const ask = (tag: string) => all.get(`r/x:${tag}`, 'always', { tenant, id: tag as ContainerId });
  const tags = Array.from({ length: limits.pullsPerTenant + 2 }, (_, index) => `v${index}`);
  const asked = tags.map(ask);
  await delay(0);
  t.equal(pulling.size, limits.pullsPerTenant);
  const [given, last] = tags.slice(-2) as [string, string];
  all.leave(given as ContainerId);
  t.match(await asked.at(-2)?.catch((error: unknown) => error), { fault: { kind: 'aborted' } });
  pulling.get('r/x:v0')?.();
  await delay(0);
  t.same(
    [...pulling.keys()],
    [...tags.slice(1, limits.pullsPerTenant), last].map((tag) => `r/x:${tag}`),
  );
  all.stop();
  await Promise.allSettled(asked);
});

t.test('the engine asks no registry that is not permitted; an image on the host needs no permission', async (t) => {
  const { engine } = pullingEngine();
  const pulled: string[] = [];
  const present: Engine = {
    ...engine,
    imageId: (reference: string) => Promise.resolve(`id of ${reference}`),
    pull: (reference: string) => Promise.resolve(void pulled.push(reference)),
  };
  const refusal = new RegistryError('not_allowed', 'no');
  const all = pullsOf(present, () => Promise.reject(refusal));
  const forWhom = { tenant, id: 'a' as ContainerId };
  t.equal(await all.get('10.0.0.1:6379/x:1', 'if_not_present', forWhom), 'id of 10.0.0.1:6379/x:1');
  t.equal(await all.get('10.0.0.1:6379/x:1', 'always', forWhom).catch((error: unknown) => error), refusal);
  t.same(pulled, []);
});

t.test('an image that two tenants wait for does not wait for the places of the first', async (t) => {
  const { engine, pulling } = pullingEngine();
  const all = pullsOf(engine);
  const ask = (of: string, tag: string) =>
    all
      .get(`r/x:${tag}`, 'always', { tenant: of as TenantId, id: `${of}-${tag}` as ContainerId })
      .catch(() => 'failed');
  const own = Array.from({ length: limits.pullsPerTenant }, (_, index) => `own${index}`);
  const asked = [...own, 'shared'].map((tag) => ask('slow', tag));
  await delay(0);
  t.same(all.counts(), { waiting: 1, running: limits.pullsPerTenant, aside: 0, queued: 0 });
  asked.push(ask('other', 'shared'));
  await delay(0);
  t.ok(pulling.has('r/x:shared'));
  all.leave('other-shared' as ContainerId);
  await delay(0);
  t.ok(pulling.has('r/x:shared'), 'the first still waits for it');
  all.stop();
  await Promise.all(asked);
});

t.test('each container that waits for a pull learns how far it is', async (t) => {
  const { engine } = pullingEngine();
  const lines = new PullLines();
  let say = (_status: string, _current = 0, _total = 0): void => undefined;
  const telling: Engine = {
    ...engine,
    pull: (reference, signal, { onLine } = {}) => {
      say = (status, current = 0, total = 0) => {
        lines.note({ id: 'layer', status, progressDetail: { current, total } });
        onLine?.(lines);
      };
      return engine.pull(reference, signal);
    },
  };
  const warnings: string[] = [];
  const log = createLog('test', 'silent');
  const all = createPulls({
    ...usual,
    engine: telling,
    permit: () => Promise.resolve(),
    log: { ...log, warn: (event) => void warnings.push(event) },
  });
  const [a, b] = ['a', 'b'] as [ContainerId, ContainerId];
  const asked = [a, b].map((id) => all.get('r/x:1', 'always', { tenant, id }).catch(() => 'failed'));
  await delay(0);
  t.same([...all.progress()], [], 'nothing yet');
  const moved = all.moved(new AbortController().signal);
  say('Waiting');
  await moved;
  t.equal(all.counts().queued, 1);
  t.same(warnings, ['pull_queued_by_engine']);
  say('Waiting');
  t.equal(warnings.length, 1, 'once for an agent');
  say('Downloading', 3, 10);
  t.equal(all.counts().queued, 0);
  const progress = { layers: 1, bytes: 3, total: 10 };
  t.same(
    [...all.progress()],
    [
      [a, progress],
      [b, progress],
    ],
  );
  all.leave(a);
  t.same([...all.progress().keys()], [b]);
  all.stop();
  await Promise.all(asked);
  t.same([...all.progress()], []);
});

/** Pulls of tenants with these logins; `i1` is the image of every reference. */
async function tenants(logins: Record<string, Login>, more: Partial<PullsParts> = {}) {
  const pulled: { reference: string; login: unknown; end: (error?: Error) => void }[] = [];
  const proved = new Set<string>();
  const checked: string[] = [];
  let refuses = false;
  let imageId: string | undefined = 'i1';
  const engine = {
    imageId: () => Promise.resolve(imageId),
    checkAccess: (reference: string) => {
      checked.push(reference);
      return refuses ? Promise.reject(refusedBy('unauthorized: no')) : Promise.resolve();
    },
    pull: (reference: string, _signal: AbortSignal, { login }: PullOptions = {}) =>
      new Promise<void>((resolve, reject) => {
        const end = (error?: Error): void => (error === undefined ? resolve() : reject(error));
        pulled.push({ reference, login, end });
      }),
  } as unknown as Engine;
  const all = createPulls({
    ...usual,
    engine,
    permit: () => Promise.resolve(),
    access: {
      isProved: (who, id, reference) => proved.has(`${who} ${id} ${reference}`) || proved.has(`all ${id} ${reference}`),
      isPrivate: () => ![...proved].some((each) => each.startsWith('all')),
      prove: (who, id, reference, isVouched) =>
        isVouched && proved.add(`${who.isPublic ? 'all' : who.tenant} ${id} ${reference}`).size > 0,
      hasRoom: (who) => who !== 'full',
    },
    logins: ({ tenant: who }) => Promise.resolve(logins[who] ?? { kind: 'none' }),
    ...more,
  });
  const get = (who: string, policy: PullPolicy = 'if_not_present', reference = 'r.example/x:1') =>
    all.get(reference, policy, { tenant: who as TenantId, id: who as ContainerId });
  await delay(0);
  return {
    all,
    get,
    pulled,
    proved,
    checked,
    refuse: () => (refuses = true),
    has: (id: string | undefined) => (imageId = id),
  };
}

const loginOf = (password: string, version = 1, isCurrent = true): Login => ({
  kind: 'login',
  login: { username: 'u', password, version },
  isCurrent,
});
const refusedBy = (detail: string) => new EngineError('image pull', { kind: 'refused', status: 200 }, detail);

t.test('an image that is there is pulled first by a tenant that has not proved its access', async (t) => {
  const { get, pulled, proved } = await tenants({ acme: loginOf('secret') });
  const first = get('acme');
  await delay(0);
  t.match(pulled, [{ reference: 'r.example/x:1', login: { username: 'u', password: 'secret' } }]);
  t.same([...proved], [], 'nothing is proved before its end');
  pulled[0]?.end();
  t.equal(await first, 'i1');
  t.equal(await get('acme'), 'i1', 'and then not again');
  t.equal(pulled.length, 1);
  const other = get('other').catch((error: unknown) => error);
  await delay(0);
  t.match(pulled[1], { login: undefined });
  pulled[1]?.end(refusedBy('unauthorized: no'));
  t.match(await other, { name: 'RefusedPull', login: 'none' });
  t.same([...proved], ['acme i1 r.example/x:1'], 'a refused pull proves nothing');
  const third = get('third');
  await delay(0);
  pulled[2]?.end();
  await third;
  t.equal(await get('fourth'), 'i1', 'what the registry gives without a login is for all');
});

t.test('a tenant with as many private images as a host records', async (t) => {
  const { get, pulled } = await tenants({ full: loginOf('secret') });
  await t.rejects(get('full'), { name: 'PrivateImagesFull' });
  t.same(pulled, [], 'its image would have no record');
});

t.test('pull_policy never: an image that only logins have fetched is for those alone', async (t) => {
  const { get, pulled, proved, has } = await tenants({});
  await t.rejects(get('other', 'never'), { name: 'PrivateImageError' });
  proved.add('acme i1 r.example/x:1');
  t.equal(await get('acme', 'never'), 'i1');
  await t.rejects(get('other', 'never'), { name: 'PrivateImageError' });
  proved.add('all i1 s.example/x:1');
  t.equal(await get('other', 'never'), 'i1', 'the operator vouches for the rest');
  has(undefined);
  t.match(await get('acme', 'never').catch((error: unknown) => error), { fault: { status: 404 } });
  t.same(pulled, []);
});

t.test('with a login a pull is shared by one tenant and one version of the login', async (t) => {
  const logins: Record<string, Login> = { acme: loginOf('one'), other: loginOf('two') };
  const { all, get, pulled } = await tenants(logins);
  const ask = (who: string, id: string) =>
    all.get('r.example/x:1', 'always', { tenant: who as TenantId, id: id as ContainerId });
  const asked = [
    ask('acme', '1'),
    ask('acme', '2'),
    ask('other', '3'),
    ask('none', '4'),
    ask('none2', '5'),
    get('none3'),
  ];
  await delay(0);
  t.same(
    pulled.map(({ login }) => (login as { password: string } | undefined)?.password),
    ['one', 'two', undefined],
  );
  logins['acme'] = loginOf('three', 2);
  asked.push(ask('acme', '6'));
  await delay(0);
  t.match(pulled[3], { login: { password: 'three' } });
  for (const { end } of pulled) end();
  t.same(new Set(await Promise.all(asked)), new Set(['i1']));
});

t.test('a refused login is final only if it is the newest', async (t) => {
  for (const [before, after, expected, version] of [
    [loginOf('a', 7), loginOf('a', 7), 'login', 7],
    [loginOf('a'), loginOf('b', 2), 'old'],
    [loginOf('a'), { kind: 'none' }, 'old'],
    [loginOf('a', 1, false), loginOf('a', 1, false), 'old'],
    [{ kind: 'none' }, { kind: 'none' }, 'none', 0],
    [{ kind: 'none' }, loginOf('a'), 'old'],
    [{ kind: 'unknown' }, { kind: 'unknown' }, 'unknown'],
  ] as const) {
    const said: Login[] = [before, after];
    const { get, pulled } = await tenants({}, { logins: () => Promise.resolve(said.shift() ?? after) });
    const failure = get('acme', 'always').catch((error: unknown) => error);
    await delay(0);
    pulled[0]?.end(refusedBy('unauthorized'));
    t.match(await failure, { login: expected, version }, JSON.stringify([before, after]));
  }
});

t.test('no password in the words of a registry', async (t) => {
  const { get, pulled } = await tenants({ acme: loginOf('hunter2') });
  const failure = get('acme').catch((error: unknown) => error);
  await delay(0);
  const basic = Buffer.from('u:hunter2').toString('base64');
  pulled[0]?.end(refusedBy(`denied: the password hunter2 of Basic ${basic} is wrong`));
  const error = await failure;
  t.match(error, { detail: 'denied: the password [hidden] of Basic [hidden] is wrong' });
  t.notMatch((error as Error).message, /hunter2/);
});

t.test('by digest, the registry is asked first: the engine takes a manifest that it has', async (t) => {
  const { get, pulled, proved, checked, refuse } = await tenants({});
  const byDigest = 'r.example/x@sha256:1';
  const one = get('acme', 'if_not_present', byDigest);
  await delay(0);
  pulled[0]?.end();
  await one;
  t.same(checked, [byDigest]);
  proved.clear();
  refuse();
  t.match(await get('other', 'always', byDigest).catch((error: unknown) => error), { name: 'RefusedPull' });
  t.equal(pulled.length, 1);
  t.same([...proved], []);
});

t.test('a pull that proves nothing fails', async (t) => {
  const { get, pulled } = await tenants({}, { isVouched: (registry) => registry !== 'r.example' });
  const failure = get('other').catch((error: unknown) => error);
  await delay(0);
  pulled[0]?.end();
  t.match(await failure, { name: 'PrivateImageError', version: 0 });
});

t.test('an image that arrives while a login is asked for is not pulled again', async (t) => {
  const { engine, pulling } = pullingEngine();
  const there = new Set<string>();
  const slowTenant = 'slow' as TenantId;
  let answerSlow: (login: Login) => void = () => undefined;
  const all = createPulls({
    ...usual,
    permit: () => Promise.resolve(),
    engine: { ...engine, imageId: (reference) => Promise.resolve(there.has(reference) ? 'id' : undefined) },
    logins: ({ id }) =>
      id === 'waits' ? new Promise((resolve) => (answerSlow = resolve)) : Promise.resolve({ kind: 'none' }),
  });
  const get = (of: TenantId, id: string, reference: string) =>
    all.get(reference, 'if_not_present', { tenant: of, id: id as ContainerId });
  const busy = Array.from({ length: limits.pullsPerTenant }, (_, index) => get(slowTenant, `${index}`, `r/x:${index}`));
  const waits = get(slowTenant, 'waits', 'r/shared:1');
  const other = get(tenant, 'other', 'r/shared:1');
  await delay(0);
  there.add('r/shared:1');
  pulling.get('r/shared:1')?.();
  t.equal(await other, 'id');
  answerSlow({ kind: 'none' });
  t.equal(await waits, 'id', 'though its tenant has no place');
  all.stop();
  await Promise.allSettled(busy);
});

t.test('a container that goes while its login is asked for pulls nothing', async (t) => {
  let answer = (_login: Login): void => undefined;
  const { all, get, pulled } = await tenants({}, { logins: () => new Promise((resolve) => (answer = resolve)) });
  const failure = get('acme').catch((error: unknown) => error);
  await delay(0);
  all.leave('acme' as ContainerId);
  answer({ kind: 'none' });
  t.match(await failure, { fault: { kind: 'aborted' } });
  t.same(pulled, []);
});
