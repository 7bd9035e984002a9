/** Logs and events, as lists and as streams, and waits for a status. */
import type { Services } from '../http/call.ts';
import { eventHandlers } from './event-handlers.ts';
import { logHandler } from './log-handler.ts';
import { waitHandler } from './wait/handler.ts';

export const streamHandlers = (services: Services) => ({
  'container.logs': logHandler(services),
  ...eventHandlers(services),
  'container.wait': waitHandler(services),
});
