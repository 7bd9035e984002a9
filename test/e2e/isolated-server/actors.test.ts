/**
 * An actors process whose server is cut off cannot renew its lease: it changes servers and has a
 * lease again.
 */
import { eventually } from '../support/eventually.ts';
import { movedDeadlineMs, testIsolation } from './isolate.ts';

await testIsolation(import.meta.filename, 'a1', async (_t, { moves, metric }) => {
  await eventually(
    'it moves',
    () => moves('a1'),
    (count) => count > 0,
    movedDeadlineMs,
  );
  await eventually(
    'its lease is valid',
    () => metric('a1', 'longshore_actors_lease_valid'),
    (valid) => valid === 1,
    movedDeadlineMs,
  );
});
