/**
 * Prometheus metrics of a program, and the listener that serves them. prom-client's default metrics
 * do not pass `promtool check metrics`, so the few that matter are here.
 */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { monitorEventLoopDelay, type IntervalHistogram } from 'node:perf_hooks';
import { Registry } from 'prom-client';
import { isBearerOf } from './bearer.ts';
import { ConfigurationError, readSettingFile } from './config.ts';
import type { Stoppable } from './lifecycle.ts';
import type { Log } from './log.ts';
import { commonPrefix, label, reading, readAtScrapes } from './metric-table.ts';
import { errorBody } from '../schemas/errors.ts';
import { seconds } from '../schemas/limits/units.ts';

/** Time in which the listener of metrics stops. */
const stopListenerMs = 2 * seconds;

/** Tokens in METRICS_TOKEN_FILE. */
const metricsTokens = 8;

interface ProcessReadings {
  readonly program: string;
  readonly version: string;
  /** Each sample is the time from one tick to the next. */
  readonly delay: IntervalHistogram;
  /** Nanoseconds of a sample to seconds over the tick. */
  readonly secondsLate: (sample: number) => number;
}

const read = reading<ProcessReadings>();

/** Of every program, under the names that all client libraries of Prometheus have. */
export const standardMetrics = {
  memory: read('gauge', 'process_resident_memory_bytes', {
    help: 'Resident memory of the process.',
    watch: 'Steady after hours of the same load; a constant rise is a leak.',
    read: () => process.memoryUsage.rss(),
  }),
  start: read('gauge', 'process_start_time_seconds', {
    help: 'Start of the process, seconds since 1970.',
    watch: 'Many changes in an hour: the program keeps ending and restarting.',
    read: () => startedAtSeconds,
  }),
  cpu: read('counter', 'process_cpu_seconds_total', {
    help: 'User and system CPU time of the process.',
    watch: 'A rate near 1 is a full core: a program computes on one.',
    read: () => {
      const { user, system } = process.cpuUsage();
      return (user + system) / 1e6;
    },
  }),
};

/** Of every program. */
export const processMetrics = {
  build: read('gauge', 'build_info', {
    help: 'Build information: 1 for the version that runs.',
    watch: 'Which versions run. More than one for long: a roll-out stopped half-way.',
    labels: [label('program'), label('version')],
    read: ({ program, version }) => [[program, version, 1]],
  }),
  longestBlock: read('gauge', 'event_loop_longest_block_seconds', {
    help: 'Longest time that something blocked the event loop since the last scrape.',
    watch:
      'Over 0.05: something kept the process from answering and from renewing its lease; `longshore_actors_longest_work_seconds` says which work, in actors.',
    // Read before the percentiles, which start a new count.
    read: ({ delay, secondsLate }) => secondsLate(delay.max),
  }),
  delay: read('gauge', 'event_loop_delay_seconds', {
    help: 'Delay of the event loop since the last scrape, by percentile.',
    watch: 'The 99th percentile over 0.1 for minutes: the process is short of CPU, and every latency shows it.',
    labels: [label<number>('percentile', 50, 99)],
    read: ({ delay, secondsLate }) => {
      const seen = ([50, 99] as const).map(
        (percentile) => [percentile, secondsLate(delay.percentile(percentile))] as const,
      );
      delay.reset();
      return seen;
    },
  }),
};

const startedAtSeconds = Math.round((Date.now() - process.uptime() * 1000) / 1000);

/**
 * @param loopTickMs interval at which the event loop's delay is sampled. A block that is shorter
 *   may be missed; a program that waits most of the time spends less on it with longer ticks.
 */
export function createRegistry(program: string, version: string, loopTickMs = 10): Registry {
  const registry = new Registry();
  const delay = monitorEventLoopDelay({ resolution: loopTickMs });
  delay.enable();
  const secondsLate = (sample: number): number => Math.max(sample / 1e6 - loopTickMs, 0) / 1000;
  const readings = { program, version, delay, secondsLate };
  readAtScrapes(registry, '', standardMetrics, readings);
  readAtScrapes(registry, commonPrefix, processMetrics, readings);
  return registry;
}

/** Reason why the program is not ready; `undefined` if it is. */
export type Readiness = () => string | undefined;

export interface MetricsListener {
  readonly host: string;
  readonly port: number;
  /** Any of these tokens opens `/metrics`; none: it is open. */
  readonly tokens: readonly string[];
}

/** RFC 6750, `b64token`. */
const tokenPattern = /^[A-Za-z0-9._~+/-]{16,512}=*$/;

/**
 * The listener of /metrics, by a program's settings.
 * @throws ConfigurationError if the file of tokens cannot be read, or has a malformed token.
 */
export function metricsListenerOf(given: {
  readonly METRICS_HOST: string;
  readonly METRICS_PORT: number;
  readonly METRICS_TOKEN_FILE: string | undefined;
}): MetricsListener {
  const { METRICS_HOST: host, METRICS_PORT: port, METRICS_TOKEN_FILE: path } = given;
  if (path === undefined) return { host, port, tokens: [] };
  const lines = readSettingFile('METRICS_TOKEN_FILE', path).split('\n');
  const tokens = lines.map((line) => line.trim()).filter((line) => line !== '');
  if (tokens.length === 0 || tokens.length > metricsTokens || !tokens.every((token) => tokenPattern.test(token))) {
    const form = 'each of 16 characters or more, letters, digits and ._~+/-=';
    throw new ConfigurationError([
      `METRICS_TOKEN_FILE: ${path} must hold 1 to ${metricsTokens} tokens, one a line, ${form}`,
    ]);
  }
  return { host, port, tokens };
}

const isLoopback = (host: string): boolean => host === 'localhost' || host === '::1' || /^127\./.test(host);

/** Serves only `/metrics`, `/healthz` and `/readyz`, on a listener of its own. */
export async function serveMetrics(
  registry: Registry,
  listener: MetricsListener,
  log: Log,
  notReady: Readiness = () => undefined,
): Promise<Stoppable & { readonly url: string }> {
  if (listener.tokens.length === 0 && !isLoopback(listener.host)) {
    const why = 'anyone who can reach METRICS_HOST can read the metrics; set METRICS_TOKEN_FILE';
    log.warn('metrics_unprotected', { host: listener.host, why });
  }
  const server = createServer((request, response) => {
    const json = (status: number, body: string): void => {
      response.writeHead(status, { 'content-type': 'application/json' }).end(body);
    };
    const path = request.method === 'GET' ? request.url?.split('?')[0] : undefined;
    if (path === '/healthz') json(200, '{"status":"ok"}');
    else if (path === '/readyz') {
      const message = notReady();
      if (message === undefined) json(200, '{"status":"ready"}');
      else json(503, errorBody({ error: 'unavailable', message }));
    } else if (path === '/metrics') {
      if (listener.tokens.length > 0 && !isBearerOf(listener.tokens, request.headers.authorization)) {
        response.setHeader('www-authenticate', 'Bearer');
        return json(401, errorBody({ error: 'unauthenticated' }));
      }
      registry.metrics().then(
        (body) => response.writeHead(200, { 'content-type': registry.contentType }).end(body),
        () => json(500, errorBody({ error: 'internal' })),
      );
    } else json(404, errorBody({ error: 'not_found' }));
  });
  await new Promise<void>((resolve, reject) => {
    server.once('error', reject);
    server.listen(listener.port, listener.host, resolve);
  });
  const { address: host, port, family } = server.address() as AddressInfo;
  return {
    name: 'metrics listener',
    deadlineMs: stopListenerMs,
    url: `http://${family === 'IPv6' ? `[${host}]` : host}:${port}/metrics`,
    stop: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}
