/**
 * Finds requests that two HTTP parsers could read differently (request smuggling, RFC 9112 section
 * 11.2), before anything else looks at them. Pure; both engines pass it every header that
 * they saw.
 */

/** The headers that the gateway reads; every other one is dropped. */
export interface RequestHeaders {
  host?: string;
  authorization?: string;
  cookie?: string;
  contentType?: string;
  contentLength?: string;
  transferEncoding?: string;
  idempotencyKey?: string;
  requestId?: string;
  traceparent?: string;
  tracestate?: string;
  forwardedFor?: string;
  secFetchSite?: string;
  origin?: string;
  lastEventId?: string;
  ifNoneMatch?: string;
  ifMatch?: string;
  upgrade?: string;
  connection?: string;
  webSocketKey?: string;
  webSocketVersion?: string;
  webSocketProtocol?: string;
}

/** Headers as they are collected. `ambiguous`: a header that may come only once came twice. */
export interface HeaderBag extends RequestHeaders {
  ambiguous: boolean;
}

export const emptyBag = (): HeaderBag => ({ ambiguous: false });

/** Adds one header as it arrived, with its name in lower case. */
export function takeHeader(bag: HeaderBag, name: string, value: string): void {
  switch (name) {
    case 'host':
      if (bag.host !== undefined) bag.ambiguous = true;
      bag.host = value;
      return;
    case 'authorization':
      if (bag.authorization !== undefined) bag.ambiguous = true;
      bag.authorization = value;
      return;
    case 'content-length':
      if (bag.contentLength !== undefined) bag.ambiguous = true;
      bag.contentLength = value;
      return;
    case 'transfer-encoding':
      if (bag.transferEncoding !== undefined) bag.ambiguous = true;
      bag.transferEncoding = value;
      return;
    case 'idempotency-key':
      if (bag.idempotencyKey !== undefined) bag.ambiguous = true;
      bag.idempotencyKey = value;
      return;
    case 'cookie':
      bag.cookie = bag.cookie === undefined ? value : `${bag.cookie}; ${value}`;
      return;
    case 'x-forwarded-for':
      bag.forwardedFor = joined(bag.forwardedFor, value);
      return;
    case 'content-type':
      bag.contentType ??= value;
      return;
    case 'x-request-id':
      bag.requestId ??= value;
      return;
    // Twice is no valid one.
    case 'traceparent':
      bag.traceparent = joined(bag.traceparent, value);
      return;
    case 'tracestate':
      bag.tracestate = joined(bag.tracestate, value);
      return;
    case 'sec-fetch-site':
      bag.secFetchSite ??= value;
      return;
    case 'origin':
      bag.origin ??= value;
      return;
    case 'last-event-id':
      bag.lastEventId ??= value;
      return;
    case 'if-none-match':
      bag.ifNoneMatch = joined(bag.ifNoneMatch, value);
      return;
    case 'if-match':
      bag.ifMatch = joined(bag.ifMatch, value);
      return;
    case 'sec-websocket-key':
      if (bag.webSocketKey !== undefined) bag.ambiguous = true;
      bag.webSocketKey = value;
      return;
    case 'sec-websocket-version':
      bag.webSocketVersion = joined(bag.webSocketVersion, value);
      return;
    case 'sec-websocket-protocol':
      bag.webSocketProtocol = joined(bag.webSocketProtocol, value);
      return;
    case 'upgrade':
      bag.upgrade = joined(bag.upgrade, value);
      return;
    case 'connection':
      bag.connection = joined(bag.connection, value);
      return;
    default:
      return;
  }
}

const joined = (before: string | undefined, value: string): string =>
  before === undefined ? value : `${before}, ${value}`;

export type Framing =
  /** To be answered with 400, and nothing of it read. */
  | { readonly kind: 'refused' }
  | { readonly kind: 'empty' }
  /**
   * A method that has a body, but no header that says its length: the body counts as empty (curl
   * sends `POST` without data like this), and the connection ends with the reply, so that a hidden
   * body can't run as a request of its own.
   */
  | { readonly kind: 'unframed' }
  | { readonly kind: 'length'; readonly bytes: number }
  | { readonly kind: 'chunked' };

const refused: Framing = { kind: 'refused' };
const empty: Framing = { kind: 'empty' };
const unframed: Framing = { kind: 'unframed' };
const chunked: Framing = { kind: 'chunked' };
const lengthPattern = /^\d{1,15}$/;
/** RFC 9110 section 7.2: a name or an address, perhaps empty, and perhaps a port. */
const hostPattern = /^(?:\[[\w:.%~-]+\]|[\w.~!$&'()*+,;=%-]*)(?::\d*)?$/;

export function judgeFraming(method: string, bag: HeaderBag): Framing {
  if (bag.ambiguous || (bag.host !== undefined && !hostPattern.test(bag.host))) return refused;
  const { contentLength, transferEncoding } = bag;
  if (transferEncoding !== undefined) {
    return contentLength === undefined && transferEncoding.trim().toLowerCase() === 'chunked' ? chunked : refused;
  }
  if (contentLength === undefined) {
    return method === 'POST' || method === 'PUT' || method === 'PATCH' ? unframed : empty;
  }
  if (!lengthPattern.test(contentLength)) return refused;
  const bytes = Number(contentLength);
  return bytes === 0 ? empty : { kind: 'length', bytes };
}

const unsafeInValue = /[\r\n\0]/g;

/** uWS writes a value as it is: after a line break, the rest would be another header, or a body. */
export const safeHeaderValue = (value: string): string => value.replace(unsafeInValue, '');
