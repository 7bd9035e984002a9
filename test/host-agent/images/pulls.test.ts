import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import type { Engine } from '../../../host-agent/docker/engine.ts';
import { createPulls } from '../../../host-agent/images/pulls.ts';
import { RegistryError, type Permit } from '../../../host-agent/images/registries.ts';
import type { ContainerId, TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { PullLines } from '../../../host-agent/docker/pull-progress.ts';
import { createLog } from '../../../lib/log.ts';
import { quietLog } from '../../actors/support.ts';
import { tenant } from '../support/decisions.ts';

const pullsOf = (engine: Engine, permit: Permit = () => Promise.resolve()) =>
  createPulls({ engine, permit, metrics: { pull: () => undefined }, log: quietLog });

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
    pull: (reference, signal, onLine) => {
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
    engine: telling,
    permit: () => Promise.resolve(),
    metrics: { pull: () => undefined },
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
