/** A gateway whose NATS server is cut off is not ready, changes servers, and serves again. */
import { eventually } from '../support/eventually.ts';
import { movedDeadlineMs, testIsolation } from './isolate.ts';

await testIsolation(import.meta.filename, 'g1', async (_t, { baseUrl }) => {
  const ready = async (): Promise<number> => (await fetch(`${baseUrl}/readyz`)).status;
  await eventually('readiness falls', ready, (status) => status === 503, movedDeadlineMs);
  await eventually('it is ready again', ready, (status) => status === 200, movedDeadlineMs);
});
