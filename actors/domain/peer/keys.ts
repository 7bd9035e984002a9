/**
 * New keys, new certificates, a new password. Each is made by a gateway before the turn; here it
 * takes its place. Pure.
 */
import { limits } from '../../../schemas/limits.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import type { PeerRecord } from '../../../schemas/api/peer.ts';
import type { PartitionView } from '../state.ts';
import { tooManyRotations } from '../tenant/remembered.ts';
import { answer, conflict, repeatable, type Turn, type TurnContext } from '../turn.ts';
import { changed, find, revocation, revokeAll, shown, told, unexpired, withNext } from './transitions.ts';
import { unacknowledgedOf } from './view.ts';

/** Earlier certificates of a peer that stay valid after renewals. */
export const peerRenewedCertificates = 16;
/**
 * Revocations of a peer that its network has not acknowledged: with more, the peer gets no new keys
 * until the network has.
 */
export const peerRevocationsUnacknowledged = 256;

type Of<Type extends Ask['type']> = Extract<Ask, { type: Type }>;

const replacedMeanwhile = conflict('changed', 'the certificate was replaced meanwhile; read it again');
const tooMuchUntold = conflict(
  'too_many',
  'earlier changes of this peer have not reached the network yet; try again later',
);

const hasTooMuchUntold = (state: PartitionView, { revoked }: PeerRecord): boolean =>
  unacknowledgedOf(revoked, state.vpn.incarnation).length >= peerRevocationsUnacknowledged;

/**
 * A thief of the old keys may have the tokens and the password too, so this one turn replaces all
 * of them: an old token never fetches a new key.
 */
export function rotate(state: PartitionView, ask: Of<'peer.rotate'>, context: TurnContext): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  const { record } = found;
  const { wireguard, certificate } = ask.keys;
  if (record.certificate.serial === certificate.serial) return answer(shown('ok', record, context));
  if (record.certificate.serial !== ask.replaces) return replacedMeanwhile;
  if (hasTooMuchUntold(state, record)) return tooMuchUntold;
  const tooMany = tooManyRotations(state.tenant(ask.tenant), record, context);
  if (tooMany !== undefined) return tooMany;
  const revoked = revokeAll(record, 'superseded', context);
  const rotatedAtMs = [...(record.rotatedAtMs ?? []), context.nowMs].slice(-limits.peerRotationsAnHour);
  const { p12Password, tokens } = ask;
  return changed(record, { wireguard, certificate, p12Password, tokens, renewed: [], revoked, rotatedAtMs }, context);
}

/** The previous certificate stays valid until it expires; of too many, the oldest is revoked. */
export function certify(state: PartitionView, ask: Of<'peer.certify'>, context: TurnContext): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  const { record } = found;
  // The key is the same, and its seal is the record's: it may have been sealed again since
  // the gateway read it.
  const certificate = { ...ask.certificate, privateKey: record.certificate.privateKey };
  if (record.certificate.serial === certificate.serial) return answer(repeatable('ok', record));
  if (record.certificate.serial !== ask.replaces) return replacedMeanwhile;
  const { serial, notAfterMs } = record.certificate;
  const good = unexpired([...record.renewed, { serial, notAfterMs }], context);
  const over = good.splice(0, Math.max(0, good.length - peerRenewedCertificates));
  if (over.length > 0 && hasTooMuchUntold(state, record)) return tooMuchUntold;
  const revoked = [...record.revoked, ...over.map((ref) => revocation(ref, 'superseded', context))];
  const next = withNext(record, { certificate, renewed: good, revoked }, context);
  return answer(repeatable('ok', next), told(next));
}

/** It changes the bundle, so the generation rises. */
export function password(state: PartitionView, ask: Of<'peer.password'>, context: TurnContext): Turn {
  const found = find(state, ask);
  return 'refusal' in found ? found.refusal : changed(found.record, { p12Password: ask.p12Password }, context);
}
