import t from 'tap';
import type { HttpEngine } from '../../../../gateway/http/engine/engine.ts';
import { drain, shutdownQuietMs } from '../../../../gateway/http/engine/shutdown.ts';

const quietMs = shutdownQuietMs;

/**
 * Drains an engine that is busy at these looks; each look at the clock takes half a quiet time. The
 * first so many reads of its count find another arrival.
 */
async function drained(busyLooks: number, graceMs: number, arrivals = 0): Promise<string[]> {
  const steps: string[] = [];
  const step = (name: string) => () => void steps.push(name);
  let arrived = 0;
  const engine: HttpEngine = {
    name: 'node',
    arrivals: () => (arrived < arrivals ? (steps.push('arrival'), ++arrived) : arrived),
    inFlight: () => (steps.push('look'), busyLooks-- > 0 ? 1 : 0),
    listen: () => Promise.reject(new Error('not expected')),
    refuseKeepAlive: step('no keep-alive'),
    stopListening: step('no connections'),
    close: step('close'),
  };
  let nowMs = 0;
  const clock = { nowMs: () => 0, monotonicMs: () => (nowMs += quietMs / 2) };
  await drain(engine, clock, { delayMs: 0, graceMs });
  return steps;
}

t.test('replies end their connections before new ones are refused, and quiet ends the wait', async (t) => {
  const began = ['no keep-alive', 'no connections'];
  t.same(await drained(0, 100 * quietMs), [...began, 'look', 'look', 'close'], 'nothing in flight');
  t.same(await drained(2, 100 * quietMs), [...began, 'look', 'look', 'look', 'look', 'close'], 'quiet after two looks');
});

t.test('the grace ends the wait for a request that does not end', async (t) => {
  const looks = (await drained(Infinity, 2 * quietMs)).filter((step) => step === 'look');
  t.equal(looks.length, 3, 'and no look after it');
});

t.test('the listening socket is closed after a turn of the event loop in which nothing arrives', async (t) => {
  const steps = await drained(0, quietMs, 4);
  t.same(steps.slice(0, 6), ['no keep-alive', ...Array<string>(4).fill('arrival'), 'no connections']);
  const endless = await drained(0, quietMs, Infinity);
  t.ok(endless.includes('no connections'), 'and closed at last if they do not end');
});
