/**
 * Preconditions of writes, and the ETags that answers carry: for every ask alike, whatever it is
 * about. A write is decided on the state that its conditions were compared with, in one turn. Pure.
 */
import { isMet, withHead } from '../../../schemas/api/etag.ts';
import type { Ask, WriteAsk } from '../../../schemas/wire/asks.ts';
import { recordKey, type StateRecord } from '../records.ts';
import type { PartitionView } from '../state.ts';
import { isSuccess, refuse, type SuccessReply, type Turn } from '../turn.ts';
import { etagOfRecord, resourceOf } from './resources.ts';

const unmet = refuse(
  'precondition_failed',
  'it is not as `If-Match` or `If-None-Match` says: read it again, and decide whether your change still applies',
);

const etag = (record: StateRecord | undefined): string | undefined =>
  record === undefined ? undefined : etagOfRecord(record);

type Conditional = WriteAsk | Extract<Ask, { type: 'spec.plan' }>;

function mayWrite(state: PartitionView, ask: Conditional): boolean {
  if (ask.when === undefined) return true;
  const resource = resourceOf(state, ask);
  return resource === undefined || isMet(ask.when, etag(resource.record));
}

/**
 * A refusal for another reason comes first (RFC 9110 section 13.2.1), so a write that is not found
 * or not valid says that.
 * @param decided the same ask without its conditions
 */
export const conditional = (state: PartitionView, ask: Conditional, decided: Turn): Turn =>
  isSuccess(decided.reply) && !mayWrite(state, ask) ? unmet : decided;

/** A container that is gone at once had one more, which nothing keeps. */
function generationOf(before: StateRecord | undefined, after: StateRecord | undefined): number | undefined {
  if (after?.kind === 'container') return after.generation;
  return after?.kind === 'tombstone' && before?.kind === 'container' ? before.generation + 1 : undefined;
}

/** A create that is repeated by its key answers the container that it made the first time. */
const answered = (ask: Ask, { repeat }: SuccessReply): Ask =>
  repeat?.kind === 'container' && 'id' in ask ? { ...ask, id: repeat.id } : ask;

/**
 * Adds the ETag and the generation of the resource as the turn leaves it, if the ask wants that.
 */
export function headed(state: PartitionView, ask: Ask, turn: Turn): Turn {
  const { reply, changes } = turn;
  if (ask.head !== true || !isSuccess(reply) || reply.body === '') return turn;
  const resource = resourceOf(state, answered(ask, reply));
  if (resource === undefined) return turn;
  const after = changes.records.find((record) => recordKey(record) === resource.key) ?? resource.record;
  const known = etag(after);
  const generation = generationOf(resource.record, after);
  return { reply: { ...reply, body: withHead(reply.body, known, generation) }, changes };
}
