import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import type { Engine } from '../../../host-agent/docker/engine.ts';
import { createPulls } from '../../../host-agent/images/pulls.ts';
import { RegistryError } from '../../../host-agent/images/registries.ts';
import type { ContainerId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { tenant } from '../support/decisions.ts';

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
  const all = createPulls(engine, () => Promise.resolve(), { pull: () => undefined });
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
  const all = createPulls(engine, () => Promise.resolve(), { pull: () => undefined });
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
  const { engine, pulling } = pullingEngine();
  const present = { ...engine, imageId: (reference: string) => Promise.resolve(`id of ${reference}`) };
  const refusal = new RegistryError('not_allowed', 'no');
  const all = createPulls(present, () => Promise.reject(refusal), { pull: () => undefined });
  const forWhom = { tenant, id: 'a' as ContainerId };
  t.equal(await all.get('10.0.0.1:6379/x:1', 'if_not_present', forWhom), 'id of 10.0.0.1:6379/x:1');
  t.equal(await all.get('10.0.0.1:6379/x:1', 'always', forWhom).catch((error: unknown) => error), refusal);
  t.equal(pulling.size, 0);
});
