/**
 * The trace of one request, step by step, from events of the API or from log lines of gateways,
 * actors and agents.
 */
import { createReadStream } from 'node:fs';
import { addAbortSignal, type Readable } from 'node:stream';
import Type, { type Static } from 'typebox';
import { decoder } from '../../lib/decode.ts';
import { compareEvents } from '../../schemas/event-id.ts';
import { limits } from '../../schemas/limits.ts';
import { MiB } from '../../schemas/limits/units.ts';
import { dataOf, type Schemas } from '../client/api.ts';
import { ApiError, InterruptedError } from '../client/errors.ts';
import type { Context, Terminal } from '../context.ts';
import { Refused } from '../terminal/errors.ts';
import { outcomeText, targetText } from './audit.ts';
import { unreadable } from '../terminal/input.ts';
import { joined } from '../terminal/output.ts';
import { tableOf } from '../terminal/table.ts';

/** `trace`: steps on the way of a request, and a log line. */
const traceMoments = 10_000;
const traceLineChars = 1 * MiB;

type Event = Schemas['Event'];

/** One step of a request. */
export interface Moment {
  /** RFC 3339. */
  readonly at: string;
  /** The program whose line it is, with the host of an agent; `api` for an event. */
  readonly from: string;
  readonly what: string;
  readonly details: Readonly<Record<string, unknown>>;
}

// Log lines

const LogLine = Type.Object(
  {
    time: Type.String({ format: 'date-time' }),
    program: Type.String(),
    event: Type.String(),
    requestId: Type.String(),
    host: Type.Optional(Type.String()),
    level: Type.Optional(Type.Unknown()),
    pid: Type.Optional(Type.Unknown()),
  },
  { additionalProperties: Type.Unknown() },
);
const decodeLine = decoder(LogLine);

/** `undefined` if the line is no log line of Longshore, or belongs to another request. */
export function momentIn(line: string, requestId: string): Moment | undefined {
  if (!line.includes(requestId)) return undefined;
  let decoded: Static<typeof LogLine>;
  try {
    decoded = decodeLine(Buffer.from(line));
  } catch {
    return undefined;
  }
  if (decoded.requestId !== requestId) return undefined;
  const { time, program, event, requestId: _, host, level: __, pid: ___, ...details } = decoded;
  // Log lines of a gateway name the host of a session in the same field.
  const isAgents = program === 'host-agent' && host !== undefined;
  return {
    at: time,
    from: isAgents ? `${program} ${host}` : program,
    what: event,
    details: isAgents || host === undefined ? details : { host, ...details },
  };
}

/** A line that is too long is left out. */
async function* linesIn(stream: Readable): AsyncGenerator<string, void> {
  let rest = '';
  for await (const chunk of stream.setEncoding('utf8')) {
    const lines = `${rest}${String(chunk)}`.split('\n');
    rest = (lines.pop() ?? '').slice(0, traceLineChars);
    yield* lines;
  }
  yield rest;
}

async function momentsInLogs(
  { stdin, signal }: Terminal,
  requestId: string,
  files: readonly string[],
): Promise<Moment[]> {
  const moments: Moment[] = [];
  for (const file of files) {
    try {
      for await (const line of linesIn(addAbortSignal(signal, file === '-' ? stdin : createReadStream(file)))) {
        const moment = momentIn(line, requestId);
        if (moment !== undefined) moments.push(moment);
        if (moments.length > traceMoments)
          throw new Refused(`more than ${traceMoments} lines name the request: give fewer files`);
      }
    } catch (error) {
      if (signal.aborted) throw new InterruptedError();
      if (error instanceof Refused) throw error;
      throw unreadable(file, error);
    }
  }
  return moments;
}

// Events

/**
 * The events of a request, and those that followed from it: of the same generation of a container,
 * without a request of their own.
 */
export function eventsOf(events: readonly Event[], requestId: string): Event[] {
  const ordered = [...events].sort((one, other) => compareEvents(one.id, other.id));
  const generations = new Map<string, number>();
  return ordered.filter(({ request_id, container_id, generation }) => {
    if (request_id !== requestId) return request_id === null && generations.get(container_id) === generation;
    generations.set(container_id, generation);
    return true;
  });
}

export function momentOf({ ts, type, name, container_id, status, host_key, reason, message, by }: Event): Moment {
  const why = { ...(reason === null ? {} : { reason }), ...(message === null ? {} : { message }) };
  const host = host_key === null ? {} : { host: host_key };
  const who = by?.subject ? { by: by.subject } : {};
  return {
    at: ts,
    from: 'api',
    what: type,
    details: { container: container_id, name, status, ...host, ...who, ...why },
  };
}

async function momentsInEvents({ api }: Context, requestId: string): Promise<Moment[]> {
  const query = { limit: limits.eventsMax };
  const events = await dataOf(api.GET('/api/v2/compute/events', { params: { query } }));
  return eventsOf(events, requestId).map(momentOf);
}

/** Audit lines of a request: refused writes, and writes that are not about containers. */
async function momentsInAudit({ api }: Context, requestId: string): Promise<Moment[]> {
  const query = { limit: limits.auditMax };
  const lines = await dataOf(api.GET('/api/v2/audit', { params: { query } })).catch((error: unknown) => {
    // The token may not read it.
    if (error instanceof ApiError && error.code === 'forbidden') return [];
    throw error;
  });
  return lines
    .filter(({ request_id }) => request_id === requestId)
    .map((line) => ({
      at: line.ts,
      from: 'api',
      what: line.action,
      details: {
        outcome: outcomeText(line),
        target: targetText(line.target),
        ...(line.by.subject ? { by: line.by.subject } : {}),
      },
    }));
}

// Output

/** `12 ms`, `3.4 s` */
const durationText = (ms: number): string => (ms < 1000 ? `${ms} ms` : `${(ms / 1000).toFixed(1)} s`);

const detailText = ([name, value]: readonly [string, unknown]): string =>
  `${name}=${typeof value === 'string' && /^\S+$/.test(value) ? value : JSON.stringify(value)}`;

/** The steps in the order of their time, each with the time since the one before. */
export function wayOf(moments: readonly Moment[]): (Moment & { readonly after_ms: number })[] {
  const ordered = [...moments].sort((one, other) => Date.parse(one.at) - Date.parse(other.at));
  return ordered.map((moment, index) => {
    const before = ordered[index - 1] ?? moment;
    return { ...moment, after_ms: Date.parse(moment.at) - Date.parse(before.at) };
  });
}

function show({ stdout }: Terminal, moments: readonly Moment[], isJson: boolean): void {
  const way = wayOf(moments);
  const rows = way.map(({ at, after_ms, from, what, details }) => [
    at,
    `+${durationText(after_ms)}`,
    from,
    what,
    Object.entries(details).map(detailText).join(' '),
  ]);
  const text = isJson ? JSON.stringify(way, null, 2) : tableOf(['time', 'after', 'from', 'what', ''], rows, '');
  stdout.write(joined([text, '\n']));
}

export async function traceEvents(context: Context, requestId: string): Promise<void> {
  const events = await momentsInEvents(context, requestId);
  const moments = events.length > 0 ? events : await momentsInAudit(context, requestId);
  if (moments.length === 0) {
    const where = `none of your newest ${limits.eventsMax} events and lines of the audit names the request "${requestId}"`;
    throw new Refused(`${where}: the X-Request-Id of a change is its id; for others, see --logs`);
  }
  if (events.length === 0)
    context.tell('It changed no container, or none of which the newest events say so. The audit says:');
  show(context.terminal, moments, context.isJson);
}

export async function traceLogs(
  terminal: Terminal,
  requestId: string,
  files: readonly string[],
  isJson: boolean,
): Promise<void> {
  const moments = await momentsInLogs(terminal, requestId, files);
  if (moments.length === 0) throw new Refused(`no log line in ${files.join(', ')} names the request "${requestId}"`);
  show(terminal, moments, isJson);
}
