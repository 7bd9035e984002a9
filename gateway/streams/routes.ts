/** Logs and events, as lists and as streams, and waits for a status. */
import type { Handlers } from '../call.ts';
import { eventRoutes, type EventRoutesOptions } from './event-handlers.ts';
import { logHandler, logStreamHandler, type LogRouteOptions } from './log-handler.ts';
import { logListHandler } from './log-list.ts';
import { watchHandler, type WatchRouteOptions } from './watch.ts';
import { waitHandler, type WaitRouteOptions } from './wait/handler.ts';

export const streamRoutes = (options: LogRouteOptions & EventRoutesOptions & WaitRouteOptions & WatchRouteOptions) =>
  ({
    'container.logs': logHandler(options),
    'container.logs.stream': logStreamHandler(options),
    'log.list': logListHandler(options),
    ...eventRoutes(options),
    'container.wait': waitHandler(options),
    'container.watch': watchHandler(options),
  }) satisfies Partial<Handlers>;
