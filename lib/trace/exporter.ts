/**
 * Sends spans to a receiver of OTLP over HTTP, in batches, one at a time. Nothing waits for it: a
 * receiver that is slow or away costs the spans that no longer fit into the queue, and they are
 * counted.
 */
import type { Registry } from 'prom-client';
import { jitter, sleep, withAbort } from '../time/backoff.ts';
import type { Clock } from '../time/clock.ts';
import type { Log } from '../log.ts';
import { commonPrefix, counter, label, record } from '../metric-table.ts';
import { rateLimitedLog } from '../rate-limited-log.ts';
import { limits } from '../../schemas/limits.ts';
import { encodeSpans } from './otlp.ts';
import type { Attributes, FinishedSpan } from './tracer.ts';
import { seconds } from '../../schemas/limits/units.ts';

/** Spans that wait for their receiver; more are dropped. One takes half a kilobyte. */
export const traceQueuedSpans = 4096;
/** Spans of one request to the receiver. */
export const traceBatchSpans = 512;
/** Time that the first span of a batch waits for others; retries begin with twice that. */
const traceExportEveryMs = 1 * seconds;
/** Deadline of one request, and its attempts. */
const traceExportTimeoutMs = 5 * seconds;
const traceExportAttempts = 4;
/** Time to send the last spans when the program stops. */
const traceStopMs = 1 * seconds;

/** `dropped`: the queue was full. `failed`: the receiver did not take them. */
export type SpanOutcome = 'exported' | 'dropped' | 'failed';
export type CountSpans = (outcome: SpanOutcome, spans: number) => void;

export const spanMetrics = {
  span: counter('trace_spans_total', {
    help: 'Spans, by outcome: exported, dropped from a full queue, or failed at their receiver.',
    watch:
      'Dropped or failed ones rise: the receiver is slow or away, and traces have gaps ([traces](traces.md)); `spans_not_exported` names the cause.',
    labels: [label<SpanOutcome>('outcome', 'exported', 'dropped', 'failed')],
  }),
};

export const countSpans = (registry: Registry): CountSpans => record(registry, commonPrefix, spanMetrics).span;

export interface ExporterOptions {
  readonly url: string;
  readonly headers: Readonly<Record<string, string>>;
  readonly resource: Attributes;
  readonly count: CountSpans;
  readonly clock: Clock;
  readonly log: Log;
}

export interface Exporter {
  take(span: FinishedSpan): void;
  /** Sends what waits, as far as it takes no longer than `traceStopMs`; later spans are dropped. */
  stop(): Promise<void>;
}

/** Another attempt may succeed (OTLP specification, "Retryable Response Codes"). */
const retryableStatuses: readonly number[] = [429, 502, 503, 504];

export function createExporter({ url, headers, resource, count, clock, log }: ExporterOptions): Exporter {
  const refusals = rateLimitedLog(log, limits.refusalLogMs, clock);
  const queue: FinishedSpan[] = [];
  const ending = new AbortController();
  /** Nothing more is sent. */
  const over = new AbortController();
  let timer: NodeJS.Timeout | undefined;
  let sending: Promise<void> | undefined;

  /** @returns the failure; `undefined` if the receiver has the spans */
  const post = async (body: string): Promise<{ readonly error: unknown; readonly isFinal: boolean } | undefined> => {
    const exported = async ({ signal }: AbortController): Promise<Response> => {
      const response = await fetch(url, {
        method: 'POST',
        headers: { ...headers, 'content-type': 'application/json' },
        body,
        redirect: 'error',
        signal,
      });
      await response.body?.cancel();
      return response;
    };
    try {
      const response = await withAbort([over.signal], exported, traceExportTimeoutMs);
      if (response.ok) return undefined;
      return { error: `HTTP ${response.status}`, isFinal: !retryableStatuses.includes(response.status) };
    } catch (error) {
      return { error, isFinal: false };
    }
  };

  const send = async (batch: readonly FinishedSpan[]): Promise<void> => {
    const body = encodeSpans(batch, resource);
    for (let attempt = 1; ; attempt++) {
      const failure = await post(body);
      if (failure === undefined) {
        count('exported', batch.length);
        return;
      }
      const { error, isFinal } = failure;
      if (isFinal || attempt >= traceExportAttempts || ending.signal.aborted) {
        count('failed', batch.length);
        refusals.warn('spans_not_exported', { url, spans: batch.length, error });
        return;
      }
      await sleep(jitter(traceExportEveryMs * 2 ** attempt), ending.signal);
    }
  };

  const drain = async (): Promise<void> => {
    while (queue.length > 0 && !over.signal.aborted) await send(queue.splice(0, traceBatchSpans));
  };
  const begin = (): void => {
    clearTimeout(timer);
    timer = undefined;
    sending ??= drain().finally(() => {
      sending = undefined;
      if (queue.length > 0 && !over.signal.aborted) begin();
    });
  };

  return {
    take: (span) => {
      if (queue.length >= traceQueuedSpans || ending.signal.aborted) {
        count('dropped', 1);
        return;
      }
      queue.push(span);
      if (queue.length >= traceBatchSpans) begin();
      else timer ??= setTimeout(begin, traceExportEveryMs).unref();
    },
    stop: async () => {
      ending.abort();
      const ends = setTimeout(() => over.abort(), traceStopMs);
      begin();
      await sending;
      clearTimeout(ends);
      if (queue.length > 0) count('dropped', queue.splice(0).length);
    },
  };
}
