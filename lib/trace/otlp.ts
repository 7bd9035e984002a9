/**
 * Spans as OTLP has them in JSON: the message `ExportTraceServiceRequest` of opentelemetry-proto,
 * where ids are hex and times are texts of nanoseconds. Pure.
 */
import type { Attributes, FinishedSpan, SpanKind } from './tracer.ts';

/** `Span.SpanKind` */
const kinds: Readonly<Record<SpanKind, number>> = { internal: 1, server: 2, client: 3, consumer: 5 };
/** `Status.StatusCode` */
const errorStatus = { code: 2 };

const valueOf = (value: string | number) =>
  typeof value === 'string'
    ? { stringValue: value }
    : Number.isInteger(value)
      ? { intValue: value }
      : { doubleValue: value };

const attributesOf = (attributes: Attributes) =>
  Object.entries(attributes).flatMap(([key, value]) => (value === undefined ? [] : [{ key, value: valueOf(value) }]));

/** Of the wall clock in milliseconds, which a double holds to a microsecond. */
const nanosOf = (ms: number): string => `${Math.round(ms * 1000)}000`;

const spanOf = (span: FinishedSpan) => ({
  traceId: span.traceId,
  spanId: span.spanId,
  ...(span.parentSpanId === undefined ? {} : { parentSpanId: span.parentSpanId }),
  ...(span.traceState === undefined ? {} : { traceState: span.traceState }),
  name: span.name,
  kind: kinds[span.kind],
  startTimeUnixNano: nanosOf(span.startMs),
  endTimeUnixNano: nanosOf(span.endMs),
  attributes: attributesOf(span.attributes),
  status: span.isError ? errorStatus : {},
});

/** @param resource attributes of all spans of this program */
export const encodeSpans = (spans: readonly FinishedSpan[], resource: Attributes): string =>
  JSON.stringify({
    resourceSpans: [
      {
        resource: { attributes: attributesOf(resource) },
        scopeSpans: [{ scope: { name: 'longshore' }, spans: spans.map(spanOf) }],
      },
    ],
  });
