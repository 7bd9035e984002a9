/** Pulls take turns in places; those that take long move aside. */
import { setImmediate as settled } from 'node:timers/promises';
import t from 'tap';
import { createPullPlaces, type PlaceBounds } from '../../../host-agent/images/pull-places.ts';
import type { TenantId } from '../../../schemas/ids.ts';
import { until } from '../../support/until.ts';

const hours = 3_600_000;
const usual: PlaceBounds = { places: 2, placesAside: 1, perTenant: 2, perRegistry: 2, patienceMs: hours };

/** Pulls that end when the test says so. */
function pulling(more: Partial<PlaceBounds> = {}) {
  const places = createPullPlaces({ ...usual, ...more });
  const working = new Map<string, () => void>();
  const failures: string[] = [];
  const controllers = new Map<string, AbortController>();
  const begin = (name: string, tenants: Set<string>, registry = 'x') => {
    const controller = new AbortController();
    controllers.set(name, controller);
    const ask = { tenants: () => tenants as Set<TenantId>, registry, signal: controller.signal };
    void places
      .run(ask, () => new Promise<void>((resolve) => working.set(name, resolve)))
      .catch(() => failures.push(name))
      .finally(() => working.delete(name));
  };
  const end = async (name: string): Promise<void> => {
    working.get(name)?.();
    await settled();
  };
  return { places, begin, end, failures, controllers, working: () => [...working.keys()] };
}

t.test('a pull waits for a place, and takes none after it is given up', async (t) => {
  const { places, begin, end, failures, controllers, working } = pulling();
  for (const [name, tenant] of ['a', 'b', 'c', 'd'].map((each) => [each, `t-${each}`] as const)) {
    begin(name, new Set([tenant]));
  }
  await settled();
  t.same(working(), ['a', 'b']);
  t.same(places.counts(), { waiting: 2, running: 2, aside: 0 });
  controllers.get('c')?.abort();
  await settled();
  t.same(failures, ['c']);
  await end('a');
  t.same(working(), ['b', 'd']);
  begin('e', new Set(['t-e']));
  await end('b');
  controllers.get('d')?.abort();
  await end('d');
  t.same(working(), ['e']);
  await end('e');
  t.same(places.counts(), { waiting: 0, running: 0, aside: 0 });
});

t.test('a pull given up in the moment that it gets its place begins no work', async (t) => {
  const { begin, failures, controllers, working } = pulling();
  begin('a', new Set(['t-a']));
  controllers.get('a')?.abort();
  await settled();
  t.same([working(), failures], [[], ['a']]);
});

t.test('pulls that take long move aside, as far as there is room, and others take their places', async (t) => {
  const { places, begin, end, working } = pulling({ patienceMs: 1 });
  const slow = new Set(['slow']);
  begin('s1', slow);
  begin('s2', slow);
  await until('one aside, and one place taken', () => {
    const { running, aside } = places.counts();
    return running === 1 && aside === 1;
  });
  begin('a', new Set(['other']));
  await settled();
  t.same(working(), ['s1', 's2', 'a']);
  begin('s3', slow);
  await settled();
  t.equal(places.counts().waiting, 1, 'the tenant is at its bound');
  await end('s1');
  await until('the next aside', () => places.counts().aside === 1);
  t.ok(working().includes('s2'));
  for (const name of ['a', 's2', 's3']) {
    await until(`${name} begun`, () => working().includes(name));
    await end(name);
  }
});

t.test('a pull counts for a tenant that still waits for it', async (t) => {
  const { begin, end, places, working } = pulling({ places: 4, perTenant: 1 });
  const both = new Set(['t-a']);
  begin('shared', both);
  begin('own', new Set(['t-a']), 'y');
  await settled();
  t.same(working(), ['shared'], 'the tenant is at its bound');
  both.add('t-b');
  places.reconsider();
  await settled();
  t.same(working(), ['shared'], 'it counts for one, not for the other');
  both.delete('t-a');
  places.reconsider();
  await settled();
  t.same(working(), ['shared', 'own']);
  begin('b', new Set(['t-b']), 'z');
  await settled();
  t.same(working(), ['shared', 'own'], 'now it counts for the other');
  for (const name of ['shared', 'own', 'b']) await end(name);
});
