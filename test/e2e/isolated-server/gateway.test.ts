/**
 * A gateway whose NATS server is cut off stops being ready. It connects to another server and
 * serves again.
 */
import { eventually } from '../support/eventually.ts';
import { movedDeadlineMs, testIsolation } from './isolate.ts';

await testIsolation(import.meta.filename, 'g1', async (_t, { baseUrl }) => {
  const ready = async (): Promise<number> => (await fetch(`${baseUrl}/readyz`)).status;
  await eventually('the gateway is not ready', ready, (status) => status === 503, movedDeadlineMs);
  await eventually('the gateway is ready again', ready, (status) => status === 200, movedDeadlineMs);
});
