/**
 * Answers to POSTs with an `Idempotency-Key`. An answer is kept in the commit of its write, so a
 * request that is sent again never executes twice; one that shows a secret ends with its resource,
 * and is given only to who made it. Pure.
 */
import type { AnswerRecord, Once } from '../../../schemas/records/kept-answer.ts';
import { limits } from '../../../schemas/limits.ts';
import { keys } from '../../../schemas/records/buckets.ts';
import type { Ask, WriteAsk } from '../../../schemas/wire/asks.ts';
import { answerTo, createdBy, usedByAnother } from './alive.ts';
import { bodyAgain } from '../container/decide.ts';
import { headed } from '../preconditions/decide.ts';
import type { PartitionView } from '../state.ts';
import type { TenantId } from '../../../schemas/ids.ts';
import {
  answer,
  conflict,
  data,
  isSuccess,
  noChanges,
  refuseFor,
  type Changes,
  type Turn,
  type TurnContext,
} from '../turn.ts';

const keyUsed = conflict('key_used', 'a request with this key was executed already, and its answer is not yours');
const answerEnded = conflict(
  'key_used',
  'what was made with this key no longer exists, or has other secrets by now; send the request with another key',
);

/** The write that a request is about: others of the same request have no line in the audit. */
type Repeatable = WriteAsk & { readonly tenant: TenantId; readonly repeatable: Once };
const isRepeatable = (ask: WriteAsk): ask is Repeatable =>
  ask.repeatable !== undefined && ask.cause !== undefined && 'tenant' in ask;

/** The answer that a request had the first time: `{"data": {body, sealed} | null}`. */
export function get(state: PartitionView, ask: Extract<Ask, { type: 'answer.get' }>, context: TurnContext): Turn {
  const tenant = state.tenant(ask.tenant);
  if (createdBy(tenant, ask.key, context) !== undefined) return usedByAnother;
  const kept = answerTo(tenant, ask.key, context);
  if (kept === undefined) return answer(data('ok', null));
  if (kept.request !== ask.request) return usedByAnother;
  const { secret } = kept;
  if (secret !== undefined && secret.by !== ask.by) return keyUsed;
  const body = bodyOf(state, kept, context);
  if (body === undefined || secret?.sealed === null) return answerEnded;
  return answer(data('ok', { body, sealed: secret?.sealed ?? null }));
}

/** The body, with its head; `undefined` if the container is gone. */
function bodyOf(state: PartitionView, { tenant, answer: kept }: AnswerRecord, context: TurnContext) {
  if (kept.kind === 'body') return kept.body;
  const { id } = kept;
  const body = bodyAgain(state, tenant, id, context);
  if (body === undefined) return undefined;
  const ask = { type: 'container.get', tenant, id, head: true, rid: '', budgetMs: 0 } as const;
  return headed(state, ask, answer({ code: 'ok', body, repeat: { kind: 'container', tenant, id } })).reply.body;
}

/** The refusal of a write whose key was used; `undefined` if the write may be decided. */
export function refusalOf(state: PartitionView, ask: WriteAsk, context: TurnContext): Turn | undefined {
  if (!isRepeatable(ask)) return undefined;
  const tenant = state.tenant(ask.tenant);
  // The gateway asks for the answer again (`answer.get`).
  if (answerTo(tenant, ask.repeatable.key, context) !== undefined) return keyUsed;
  if (createdBy(tenant, ask.repeatable.key, context) !== undefined) return usedByAnother;
  if (tenant.answersBytes < limits.keptAnswersBytesPerTenant) return undefined;
  const [first] = tenant.answers.values();
  return refuseFor(
    (first?.untilMs ?? context.nowMs) - context.nowMs,
    'this tenant has used as many Idempotency-Keys in 24 hours as are kept: send requests without one, or wait for ' +
      'as long as Retry-After says',
  );
}

/** The resource whose secrets a write ends; `all` includes those below it. */
function endedBy(ask: WriteAsk): { readonly of: string; readonly all: boolean } | undefined {
  switch (ask.type) {
    case 'key.remove':
      return { of: ask.key, all: false };
    case 'peer.remove':
    case 'peer.rotate':
      return { of: ask.peer, all: true };
    case 'peer.password':
      return { of: ask.peer, all: false };
    case 'peer.token.remove':
      return { of: `${ask.peer}/${ask.token}`, all: false };
    case 'peer.link.remove':
      return { of: `${ask.peer}/${ask.link}`, all: false };
    default:
      return undefined;
  }
}

function* endedRecords(state: PartitionView, ask: WriteAsk): Generator<AnswerRecord, void, void> {
  const ended = endedBy(ask);
  if (ended === undefined || !('tenant' in ask)) return;
  for (const record of state.tenant(ask.tenant).answers.values()) {
    const { secret } = record;
    if (secret === undefined || secret.sealed === null) continue;
    const isEnded = secret.of === ended.of || (ended.all && secret.of.startsWith(`${ended.of}/`));
    if (isEnded) yield { ...record, secret: { ...secret, sealed: null } };
  }
}

function recordOf({ tenant, repeatable: once }: Repeatable, { reply }: Turn, { nowMs }: TurnContext): AnswerRecord {
  const repeat = isSuccess(reply) ? reply.repeat : undefined;
  return {
    kind: 'answer',
    tenant,
    key: once.key,
    request: once.request,
    answer: repeat === undefined ? { kind: 'body', body: reply.body } : { kind: 'container', id: repeat.id },
    ...(once.secret === undefined ? {} : { secret: once.secret }),
    updatedAtMs: nowMs,
    untilMs: nowMs + limits.idempotencyTtlMs,
  };
}

/** Adds the answers that a write ends or keeps: a kept one is in the commit of its write. */
export function withKept(state: PartitionView, ask: WriteAsk, turn: Turn, context: TurnContext): Turn {
  if (!isSuccess(turn.reply)) return turn;
  const records = [...endedRecords(state, ask), ...(isRepeatable(ask) ? [recordOf(ask, turn, context)] : [])];
  if (records.length === 0) return turn;
  return { ...turn, changes: { ...turn.changes, records: [...turn.changes.records, ...records] } };
}

/** Answers whose time is over; they are in the order in which they were made. */
export function expiredAnswers(state: PartitionView, nowMs: number): Changes {
  const deletes: string[] = [];
  for (const { tenant, key, untilMs } of state.answers()) {
    if (untilMs > nowMs || deletes.length >= limits.sweepChanges) break;
    deletes.push(keys.answer(tenant, key));
  }
  return deletes.length === 0 ? noChanges : { ...noChanges, deletes };
}
