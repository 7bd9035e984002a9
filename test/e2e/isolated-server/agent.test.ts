/**
 * An agent whose NATS server is cut off gets no answers. It connects to another server, and its
 * host is up again.
 */
import { createApi } from '../../../dev/api.ts';
import { hostKey } from '../../faults/world/world.ts';
import { eventually } from '../support/eventually.ts';
import { movedDeadlineMs, testIsolation } from './isolate.ts';

await testIsolation(import.meta.filename, 'h1', async (_t, { baseUrl, operator, moves }) => {
  await eventually(
    'h1 connects to another server',
    () => moves('h1'),
    (count) => count > 0,
    movedDeadlineMs,
  );
  const api = createApi(baseUrl);
  await eventually(
    'the host is up',
    // The host's owner may be a client of the same server, and unreachable until it moves, too.
    () => api.hostIsUp(operator, hostKey, AbortSignal.timeout(movedDeadlineMs)),
    () => true,
    movedDeadlineMs,
  );
});
