/** `GET /audit`: writes, refusals and sessions, newest first; of a tenant, or of all. */
import { seenBy, type AuditLine } from '../../schemas/api/audit/line.ts';
import { decodePastCursor, encodePastCursor, type PastCursor } from '../../schemas/api/cursor.ts';
import { compareEvents } from '../../schemas/event-id.ts';
import { errorStatus, type FieldErrors } from '../../schemas/errors.ts';
import type { TenantId } from '../../schemas/ids.ts';
import { subjects } from '../../schemas/wire/subjects.ts';
import type { Log } from '../../lib/log.ts';
import { decodeAnswer } from '../../lib/rpc/decode.ts';
import type { AskOwner } from '../../lib/rpc/partition-client.ts';
import { succeeded, tenantOf, type CallOf, type Handled, type HandlerOf, type Handlers } from '../call.ts';
import { pageResult, wrongCursor } from '../http/pages.ts';
import { invalid, type Result } from '../http/respond.ts';
import { pageOf, type PastRange, type Placed } from '../streams/past.ts';
import { AskError, readNow } from '../streams/requests.ts';
import { meant } from '../../lib/validation/misspelt.ts';
import { periodIn } from '../validation/timestamp.ts';
import { actions } from './cause.ts';
import type { AuditReader } from './reader.ts';

type AuditCall = CallOf<'audit.list' | 'audit.find'>;
type Range = PastRange<AuditLine>;

interface Times {
  readonly fromMs: number | undefined;
  readonly toMs: number | undefined;
}

const outcomes: readonly string[] = ['done', ...Object.keys(errorStatus)];

const unknownAction = (action: string): string => {
  const right = meant(action, actions);
  return `is no operation of the audit${right === undefined ? ', such as container.create' : `: did you mean ${right}?`}`;
};

/** The times of a query, or all that is wrong with it. */
function timesOf({ from, to, action, outcome }: AuditCall['query']): Times | { readonly faults: FieldErrors } {
  const { startMs: fromMs, endMs: toMs, faults } = periodIn(['from', from], ['to', to]);
  if (action !== undefined && !actions.includes(action)) faults['action'] = [unknownAction(action)];
  if (outcome !== undefined && !outcomes.includes(outcome))
    faults['outcome'] = [`must be one of ${outcomes.join(', ')}`];
  return Object.keys(faults).length > 0 ? { faults } : { fromMs, toMs };
}

const isWanted =
  ({ action, subject, outcome }: AuditCall['query'], { fromMs = -Infinity, toMs = Infinity }: Times) =>
  (line: AuditLine): boolean => {
    const ms = Date.parse(line.ts);
    if (ms < fromMs || ms >= toMs) return false;
    if (action !== undefined && line.action !== action) return false;
    return (
      (subject === undefined || line.by.subject === subject) && (outcome === undefined || line.outcome === outcome)
    );
  };

/** True if a line of one partition is older than the last that was given. */
const isOlder = (cursor: PastCursor | undefined, { id }: AuditLine): boolean =>
  cursor === undefined || cursor.id === '' || compareEvents(id, cursor.id) < 0;

/** True if a line lies before the last that was given, in a stream of many partitions. */
const liesBefore = (cursor: PastCursor | undefined, { at, item }: Placed<AuditLine>): boolean =>
  cursor?.at === undefined || at === undefined || at < cursor.at || isOlder(cursor, item);

export interface AuditRoutesOptions {
  readonly ask: AskOwner;
  readonly audit: Pick<AuditReader, 'find'>;
  readonly log: Log;
}

export function auditRoutes(options: AuditRoutesOptions) {
  /** Newest first: those that the stream may not show yet. */
  const recentOf = async (
    call: AuditCall,
    tenant: TenantId,
    range: Range,
    cursor: PastCursor | undefined,
  ): Promise<readonly Placed<AuditLine>[]> => {
    const found: Placed<AuditLine>[] = [];
    for (let before = cursor?.id || null; ;) {
      const question = { type: 'audit.recent', tenant, before, limit: range.wanted, ...call.origin } as const;
      const outcome = await options.ask('read', question, call.deadlineMs);
      if (!succeeded(outcome)) throw new AskError(outcome);
      const { lines, more } = decodeAnswer('audit.recent', outcome.body).data;
      const page = lines.map((item) => ({ item, at: undefined })).reverse();
      found.push(...page.filter(range.matches));
      before = lines[0]?.id ?? null;
      if (!more || before === null || found.length >= range.wanted) return found;
    }
  };

  /** Asks the owner first, then reads the stream: see streams/events.ts. */
  const ofTenant = async (call: AuditCall, tenant: TenantId, range: Range, cursor: PastCursor | undefined) => {
    const recent = await recentOf(call, tenant, range, cursor);
    const found = await options.audit.find(range);
    const all = [...found.items, ...recent].sort((one, other) => compareEvents(other.item.id, one.item.id));
    return pageOf(all, found, { cursor, limit: range.wanted - 1 });
  };

  const ofAll = async (range: Range, cursor: PastCursor | undefined) => {
    const found = await options.audit.find(range);
    return pageOf(found.items, found, { cursor, limit: range.wanted - 1 });
  };

  const list = async (call: AuditCall, tenant: TenantId | undefined, shown: (line: AuditLine) => AuditLine) => {
    const { cursor: text, limit } = call.query;
    const times = timesOf(call.query);
    if ('faults' in times) return invalid(times.faults);
    const cursor = text === undefined ? undefined : decodePastCursor(text);
    if (text !== undefined && cursor === undefined) return wrongCursor;
    const wanted = isWanted(call.query, times);
    const matches = (placed: Placed<AuditLine>): boolean =>
      wanted(placed.item) && (tenant === undefined ? liesBefore(cursor, placed) : isOlder(cursor, placed.item));
    const subject = tenant === undefined ? subjects.allAudit : subjects.auditOfTenant(tenant);
    const range: Range = { subject, order: 'desc', ...times, at: cursor?.at, matches, wanted: limit + 1 };
    return readNow(options, call, async (): Promise<Result> => {
      const { items, next } = await (tenant === undefined
        ? ofAll(range, cursor)
        : ofTenant(call, tenant, range, cursor));
      return pageResult(items.map(shown), next === undefined ? undefined : encodePastCursor(next));
    });
  };

  const ofCaller: HandlerOf<'audit.list'> = (call): Promise<Handled> => {
    const tenant = tenantOf(call);
    return list(call, tenant, (line) => seenBy(tenant, line));
  };
  const ofOperator: HandlerOf<'audit.find'> = (call): Promise<Handled> => list(call, call.query.tenant, (line) => line);
  return { 'audit.list': ofCaller, 'audit.find': ofOperator } satisfies Partial<Handlers>;
}
