/**
 * Trace of a request: W3C Trace Context (https://www.w3.org/TR/trace-context/). From program to
 * program the context goes as the text of the header `traceparent`. Pure.
 */
export interface TraceContext {
  /** 16 bytes in hex. */
  readonly traceId: string;
  /** The span that others are below: 8 bytes in hex. */
  readonly spanId: string;
  /** True if its spans are exported. */
  readonly isSampled: boolean;
}

const pattern = /^(?!ff)([0-9a-f]{2})-(?!0{32})([0-9a-f]{32})-(?!0{16})([0-9a-f]{16})-([0-9a-f]{2})(-.*)?$/;
const sampledFlag = 1;

/**
 * `undefined` if it is not valid: a new trace then begins. Later versions may add fields at the
 * end.
 */
export function parseTraceparent(text: string): TraceContext | undefined {
  const [, version, traceId, spanId, flags, more] = pattern.exec(text) ?? [];
  if (traceId === undefined || spanId === undefined || flags === undefined) return undefined;
  if (version === '00' && more !== undefined) return undefined;
  return { traceId, spanId, isSampled: (parseInt(flags, 16) & sampledFlag) === sampledFlag };
}

export const traceparentOf = ({ traceId, spanId, isSampled }: TraceContext): string =>
  `00-${traceId}-${spanId}-${isSampled ? '01' : '00'}`;

/** For log lines: the trace that a `traceparent` names; `undefined` if it names none. */
export const traceIdOf = (trace: string | undefined): string | undefined =>
  trace === undefined ? undefined : parseTraceparent(trace)?.traceId;
