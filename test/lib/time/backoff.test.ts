import t from 'tap';
import { withAbort } from '../../../lib/time/backoff.ts';
import { collectGarbage } from '../../support/garbage.ts';

/** Ends when the signal aborts, and resolves to its reason. */
const reasonOf = ({ signal }: AbortController): Promise<unknown> =>
  new Promise((resolve) => signal.addEventListener('abort', () => resolve(signal.reason), { once: true }));

const patient = { timeout: 30_000 };

t.test('work ends in time, also when the garbage collector runs', patient, async (t) => {
  const reason = withAbort([new AbortController().signal], reasonOf, 300);
  await collectGarbage();
  t.match(await reason, { name: 'TimeoutError' });
});

t.test('work ends with any of the signals', patient, async (t) => {
  const [one, other] = [new AbortController(), new AbortController()];
  const reason = withAbort([one.signal, other.signal], reasonOf, 60_000);
  await collectGarbage();
  other.abort('enough');
  t.equal(await reason, 'enough');
  const late = withAbort([one.signal, other.signal], ({ signal }) => Promise.resolve(signal.reason));
  t.equal(await late, 'enough', 'one that has aborted before');
});

t.test('things that the work began end with it, and no listener is left at the signals', async (t) => {
  const lasting = new AbortController();
  let listeners = 0;
  const { signal } = lasting;
  const add = signal.addEventListener.bind(signal);
  const remove = signal.removeEventListener.bind(signal);
  signal.addEventListener = (...args: Parameters<typeof add>) => [listeners++, add(...args)];
  signal.removeEventListener = (...args: Parameters<typeof remove>) => [listeners--, remove(...args)];
  let begun: AbortSignal | undefined;
  const work = (controller: AbortController): Promise<void> => {
    begun = controller.signal;
    return Promise.reject(new Error('broken'));
  };
  await t.rejects(withAbort([signal], work), /broken/);
  t.match(begun, { aborted: true });
  t.equal(listeners, 0);
});
