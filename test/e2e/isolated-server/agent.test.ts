/**
 * An agent whose server is cut off gets no answers: it changes servers, and its host is up.
 */
import { createApi } from '../../../dev/api.ts';
import { hostKey } from '../../faults/world.ts';
import { eventually } from '../support/eventually.ts';
import { movedDeadlineMs, testIsolation } from './isolate.ts';

await testIsolation(import.meta.filename, 'h1', async (_t, { baseUrl, operator, moves }) => {
  await eventually(
    'it moves',
    () => moves('h1'),
    (count) => count > 0,
    movedDeadlineMs,
  );
  const api = createApi(baseUrl);
  await eventually(
    'its host is up',
    // The owner may be a client of the same server, and unreachable until it moves, too.
    () => api.hostIsUp(operator, hostKey, AbortSignal.timeout(movedDeadlineMs)),
    () => true,
    movedDeadlineMs,
  );
});
