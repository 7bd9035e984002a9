/** The keys that the cluster signs tokens with (ADR 41). Owners keep them sealed. Pure. */
import type { SigningKeyRecord } from '../../../schemas/api/keys/signing-key.ts';
import { keys } from '../../../schemas/records/buckets.ts';
import type { SigningKeyPage } from '../../../schemas/wire/answers.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import type { PartitionView } from '../state.ts';
import { answer, conflict, data, noChanges, refuse, type Turn, type TurnContext } from '../turn.ts';
import { minutes } from '../../../schemas/limits/units.ts';

/** Signing keys of the cluster that are kept, because tokens of theirs are still valid. */
export const signingKeysMax = 16;
/**
 * A replaced signing key stays for the longest life of a token and this: other gateways sign with
 * it until they have heard of the next one.
 */
export const signingKeyRestMs = 60 * minutes;

type Of<Type extends Ask['type']> = Extract<Ask, { type: Type }>;

/** Includes damaged keys, so that a gateway knows their ids as the cluster's. */
const pageOf = (records: ReadonlyMap<string, SigningKeyRecord | null>): SigningKeyPage =>
  [...records].map(([id, record]) => ({
    id,
    sealed: record?.sealed ?? null,
    insertedAtMs: record?.insertedAtMs ?? null,
    untilMs: record?.untilMs ?? null,
  }));

export const list = (state: PartitionView): Turn => answer(data('ok', pageOf(state.signingKeys())));

const tooMany =
  `tokens of ${signingKeysMax} signing keys are still valid, and no more are kept: ` +
  'wait until the oldest has ended, or end the others with "end_others=true"';

/**
 * Makes a key the current one; `precondition_failed` if `replaces` is not the current one any more.
 * The one before it stays for as long as a token that it signs at another gateway in this moment
 * may live.
 */
export function put(state: PartitionView, ask: Of<'signing_key.put'>, { nowMs, expiryMs }: TurnContext): Turn {
  const known = state.signingKeys();
  const current = [...known.values()].find((record) => record !== null && record.untilMs === null) ?? undefined;
  if ((current?.id ?? null) !== ask.replaces || known.has(ask.key.id)) {
    return refuse('precondition_failed', 'the signing key has changed meanwhile');
  }
  const isOver = (id: string, record: SigningKeyRecord | null): boolean =>
    id !== current?.id && record !== null && (record.untilMs ?? 0) <= expiryMs;
  const ended = [...known].flatMap(([id, record]) => (ask.endOthers || isOver(id, record) ? [id] : []));
  if (known.size - ended.length >= signingKeysMax) return conflict('too_many', tooMany, { max: signingKeysMax });
  const made: SigningKeyRecord = { kind: 'signing_key', ...ask.key, insertedAtMs: nowMs, untilMs: null };
  const untilMs = nowMs + ask.lifeMaxMs + signingKeyRestMs;
  const before: SigningKeyRecord[] = current === undefined || ask.endOthers ? [] : [{ ...current, untilMs }];
  const next = new Map(known);
  for (const id of ended) next.delete(id);
  for (const record of [...before, made]) next.set(record.id, record);
  const deletes = ended.map((id) => keys.signingKey(id));
  return answer(data('created', pageOf(next)), { ...noChanges, records: [...before, made], deletes });
}
