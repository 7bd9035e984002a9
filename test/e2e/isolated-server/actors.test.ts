/**
 * An actors process whose NATS server is cut off cannot renew its lease. It connects to another
 * server and gets a lease again.
 */
import { eventually } from '../support/eventually.ts';
import { movedDeadlineMs, testIsolation } from './isolate.ts';

await testIsolation(import.meta.filename, 'a1', async (_t, { moves, metric }) => {
  await eventually(
    'a1 connects to another server',
    () => moves('a1'),
    (count) => count > 0,
    movedDeadlineMs,
  );
  await eventually(
    'a1 has a valid lease',
    () => metric('a1', 'longshore_actors_lease_valid'),
    (valid) => valid === 1,
    movedDeadlineMs,
  );
});
