import t from 'tap';
import { abortingWithin } from '../../../lib/time/backoff.ts';
import { collectGarbage } from '../../support/garbage.ts';

const abortOf = (signal: AbortSignal): Promise<unknown> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(signal.reason), { once: true }));

t.test(
  'a signal with a deadline aborts in time, also when the garbage collector runs',
  { timeout: 30_000 },
  async (t) => {
    const other = new AbortController();
    const aborting = abortOf(abortingWithin(300, other.signal));
    await collectGarbage();
    // As an `unref` timer, the deadline does not keep the process.
    const busy = setTimeout(() => {}, 60_000);
    t.match(await aborting, { name: 'TimeoutError' });
    clearTimeout(busy);
  },
);

t.test('a signal with a deadline aborts with the others', async (t) => {
  const [one, other] = [new AbortController(), new AbortController()];
  const aborting = abortOf(abortingWithin(60_000, one.signal, other.signal));
  other.abort('enough');
  t.equal(await aborting, 'enough');
});
