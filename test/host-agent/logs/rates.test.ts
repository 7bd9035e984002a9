/** The choice of the next block, and the bytes per second. */
import fc from 'fast-check';
import t from 'tap';
import { createLogTurns, TokenBucket, type LogRates } from '../../../host-agent/logs/rates.ts';
import type { RateScope } from '../../../host-agent/metrics.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import type { ContainerId, TenantId } from '../../../schemas/ids.ts';
import { until } from '../../support/until.ts';
import type { LogSource } from '../../../host-agent/logs/source.ts';

const seed = Number(process.env['LONGSHORE_TEST_SEED'] ?? 20_260_102);

const source = (name: string): LogSource => ({
  tenant: (name[0] ?? '') as TenantId,
  id: name as ContainerId,
});
const unlimited: LogRates = { containerBytes: 0, tenantBytes: 0, hostBytes: 0, burstMs: 1000 };

t.test('a bucket gives its burst, then its rate, and one block more', (t) => {
  const anyStep = fc.record({ ms: fc.integer({ min: 0, max: 3000 }), bytes: fc.integer({ min: 1, max: 5000 }) });
  fc.assert(
    fc.property(fc.array(anyStep, { maxLength: 100 }), (steps) => {
      const bucket = new TokenBucket(1000, 2000, 0);
      let nowMs = 0;
      let given = 0;
      for (const { ms, bytes } of steps) {
        nowMs += ms;
        const waitMs = bucket.waitMs(nowMs);
        if (waitMs > 0) {
          nowMs += waitMs / 2;
          if (bucket.waitMs(nowMs) === 0) return false;
          nowMs += waitMs / 2 + 0.001;
          if (bucket.waitMs(nowMs) > 0) return false;
        }
        if (given >= 2000 + nowMs) return false;
        bucket.take(bytes, nowMs);
        given += bytes;
      }
      return true;
    }),
    { numRuns: 500, seed },
  );
  t.end();
});

/** Turns in virtual time, which only `at` advances. */
function start(rates: Partial<LogRates>) {
  let nowMs = 0;
  const turns = createLogTurns({ ...unlimited, ...rates }, { monotonicMs: () => nowMs });
  const served: string[] = [];
  const scopes = new Map<string, RateScope | undefined>();
  const controller = new AbortController();
  t.teardown(() => controller.abort());
  return {
    served,
    scopes,
    controller,
    ask: (name: string, bytes: number): void => {
      void turns.turn(source(name), bytes, controller.signal).then((scope) => {
        served.push(name);
        scopes.set(name, scope);
      });
    },
    at: (ms: number): void => {
      nowMs = ms;
    },
    until: (count: number) =>
      until(
        () => `${count} turns; there were ${served.join(' ')}`,
        () => served.length >= count || undefined,
      ),
  };
}

t.test('without rates no block waits', async (t) => {
  const { ask, until, served, scopes } = start({});
  for (let index = 0; index < 100; index++) ask(`a${index}`, 1_000_000);
  await until(100);
  t.equal(served.length, 100);
  t.ok([...scopes.values()].every((scope) => scope === undefined));
});

t.test('turns rotate over tenants, and over the containers of each', async (t) => {
  const { ask, at, until, served } = start({ hostBytes: 1000, burstMs: 1000 });
  // The burst, and one second of the rate.
  ask('z1', 2000);
  await until(1);
  for (const name of ['a1', 'a2', 'a3', 'a4', 'b1', 'b2', 'c1']) ask(name, 1000);
  for (let turn = 1; turn <= 7; turn++) {
    at(turn * 1000 + 1);
    await until(1 + turn);
  }
  t.same(served.slice(1), ['a1', 'b1', 'c1', 'a2', 'b2', 'a3', 'a4']);
});

t.test('only blocks over a rate wait', async (t) => {
  const rows: [Partial<LogRates>, string, string[], RateScope][] = [
    [{ containerBytes: 1000 }, 'a1', ['a2', 'b1'], 'container'],
    [{ tenantBytes: 1000 }, 'a2', ['b1', 'c1'], 'tenant'],
  ];
  for (const [rates, waits, others, scope] of rows) {
    const { ask, at, until, served, scopes } = start(rates);
    ask('a1', 5000);
    await until(1);
    ask(waits, 10);
    for (const other of others) ask(other, 10);
    await until(3);
    t.same(served.slice(1).sort(), others, `${scope}: the others went`);
    // The others continue however long it waits.
    for (const other of others) ask(other, 10);
    await until(5);
    at(6000);
    await until(6);
    t.equal(served.at(-1), waits);
    t.equal(scopes.get(waits), scope, 'the result names the rate that it waited for');
  }
});

t.test('a block that gives up its turn delays no other', async (t) => {
  const { ask, at, until, served, controller } = start({ hostBytes: 1000, burstMs: 1000 });
  ask('a1', 3000);
  await until(1);
  ask('a2', 10);
  controller.abort();
  await until(2);
  at(10_000);
  await sleep(0);
  t.same(served, ['a1', 'a2']);
});
