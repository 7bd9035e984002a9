/**
 * The program scrubs from its start, even while a partition has no owner: a damaged replica may be
 * the cause.
 */
import t from 'tap';
import { within } from '../../../../lib/time/backoff.ts';
import { keys } from '../../../../schemas/records/buckets.ts';
import { spawnActors, startCluster } from '../support.ts';

const deadlineMs = 60_000;
/** More messages than the program reads when it joins the cluster. */
const looksAwaited = 5;

t.test('a process that starts while a partition cannot be loaded scrubs the others', async (t) => {
  const { nats, nc } = await startCluster(t, 2);
  await nc.request(`$KV.state-1.${keys.checkpoint}`, 'bit rot');
  let looks = 0;
  const looked = new Promise<void>((resolve) => {
    nc.subscribe('$JS.API.STREAM.INFO.KV_state-0', {
      callback: () => {
        if (++looks === looksAwaited) resolve();
      },
    });
  });
  await nc.flush();
  const env = { SCRUB_INTERVAL: '50ms', LOG_LEVEL: 'silent' };
  const child = spawnActors(nats, 2, { env, stdio: 'ignore' });
  t.teardown(async () => {
    const ended = new Promise((resolve) => child.once('exit', resolve));
    child.kill('SIGKILL');
    await ended;
  });
  await within(looked, deadlineMs, 'the scrub');
  t.pass('the streams of the partition that serves are looked at again and again');
});
