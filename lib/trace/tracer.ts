/**
 * Spans: what a program does for a request that is traced, with its beginning and its end. The
 * gateway decides which requests are; the other programs follow the context in the messages. A
 * program whose operator has named no receiver of spans has no tracer, and does nothing of this.
 */
import { randomBytes } from 'node:crypto';
import { parseTraceparent, traceparentOf, type TraceContext } from '../../schemas/wire/trace.ts';
import type { Clock } from '../time/clock.ts';

/** `undefined` if the span does not have it. */
export type Attributes = Readonly<Record<string, string | number | undefined>>;

/** Of OpenTelemetry: answers a request, asks another program, follows a change later, or a part. */
export type SpanKind = 'server' | 'client' | 'consumer' | 'internal';

export interface SpanAbout {
  readonly name: string;
  readonly kind: SpanKind;
  readonly attributes: Attributes;
  /** By `Tracer.nowMs`; now if absent. */
  readonly startMs?: number | undefined;
}

/** A span that is over. Times are milliseconds since 1970, with fractions. */
export interface FinishedSpan extends Required<SpanAbout> {
  readonly startMs: number;
  readonly endMs: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  /** W3C `tracestate`, as the client sent it. */
  readonly traceState: string | undefined;
  readonly isError: boolean;
}

export interface SpanEnd {
  readonly name?: string;
  readonly attributes?: Attributes;
  readonly isError?: boolean;
}

export interface Span {
  readonly traceId: string;
  /** The `traceparent` of what is below this span. */
  readonly trace: string;
  end(end?: SpanEnd): void;
}

export interface Tracer {
  /** Milliseconds since 1970, with fractions. */
  nowMs(): number;
  /** The span of a request that enters here; `undefined` if it is not traced. */
  root(given: { readonly traceparent?: string; readonly tracestate?: string }, about: SpanAbout): Span | undefined;
  /** A span below another; `undefined` if the request is not traced. */
  below(trace: string | undefined, about: SpanAbout): Span | undefined;
}

/** True if a request is traced. `parent` is the context that its client sent. */
export type Sampler = (traceId: string, parent: TraceContext | undefined) => boolean;

export const samplerNames = [
  'always_on',
  'always_off',
  'traceidratio',
  'parentbased_always_on',
  'parentbased_always_off',
  'parentbased_traceidratio',
] as const;
export type SamplerName = (typeof samplerNames)[number];

const ratioDigits = 13;

/** Every program that samples a trace by the same ratio decides the same. */
const byRatio =
  (ratio: number): Sampler =>
  (traceId) =>
    parseInt(traceId.slice(-ratioDigits), 16) < ratio * 16 ** ratioDigits;

const asParent =
  (ofRoot: Sampler): Sampler =>
  (traceId, parent) =>
    parent?.isSampled ?? ofRoot(traceId, undefined);

export function samplerOf(name: SamplerName, ratio: number): Sampler {
  switch (name) {
    case 'always_on':
      return () => true;
    case 'always_off':
      return () => false;
    case 'traceidratio':
      return byRatio(ratio);
    case 'parentbased_always_on':
      return asParent(() => true);
    case 'parentbased_always_off':
      return asParent(() => false);
    case 'parentbased_traceidratio':
      return asParent(byRatio(ratio));
  }
}

export interface TracerOptions {
  readonly sampler: Sampler;
  readonly clock: Clock;
  /** Must not throw, and not wait. */
  readonly onEnd: (span: FinishedSpan) => void;
}

const newId = (bytes: number): string => randomBytes(bytes).toString('hex');
const longestTracestate = 512;

export function createTracer({ sampler, clock, onEnd }: TracerOptions): Tracer {
  let offsetMs = NaN;
  /** The wall clock, in the steps of the other one: spans within a millisecond are in order. */
  const nowMs = (): number => {
    const wallMs = clock.nowMs();
    const steadyMs = clock.monotonicMs();
    if (!(Math.abs(wallMs - steadyMs - offsetMs) <= 1)) offsetMs = wallMs - steadyMs;
    return steadyMs + offsetMs;
  };

  const begin = (
    { traceId, spanId: parentSpanId }: { readonly traceId: string; readonly spanId: string | undefined },
    about: SpanAbout,
    traceState?: string,
  ): Span => {
    const spanId = newId(8);
    const startMs = about.startMs ?? nowMs();
    return {
      traceId,
      trace: traceparentOf({ traceId, spanId, isSampled: true }),
      end: ({ attributes, isError = false, ...end } = {}) =>
        onEnd({
          ...about,
          ...end,
          attributes: { ...about.attributes, ...attributes },
          startMs,
          endMs: Math.max(nowMs(), startMs),
          traceId,
          spanId,
          parentSpanId,
          traceState,
          isError,
        }),
    };
  };

  return {
    nowMs,
    root: ({ traceparent, tracestate }, about) => {
      const parent = traceparent === undefined ? undefined : parseTraceparent(traceparent);
      const traceId = parent?.traceId ?? newId(16);
      if (!sampler(traceId, parent)) return undefined;
      const isKept = parent !== undefined && tracestate !== undefined && tracestate.length <= longestTracestate;
      return begin({ traceId, spanId: parent?.spanId }, about, isKept ? tracestate : undefined);
    },
    below: (trace, about) => {
      const parent = trace === undefined ? undefined : parseTraceparent(trace);
      return parent?.isSampled === true ? begin(parent, about) : undefined;
    },
  };
}
