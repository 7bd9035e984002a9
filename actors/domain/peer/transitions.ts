/** The steps that a peer's record takes, and finding the one that an ask is about. Pure. */
import type { PeerId, TenantId } from '../../../schemas/ids.ts';
import type { CertificateRef, RevocationReason } from '../../../schemas/api/network.ts';
import type { PeerRecord, PeerRevocation, PeerTombstoneRecord } from '../../../schemas/api/peer.ts';
import type { PartitionView } from '../state.ts';
import { answer, data, refuse, type Changes, type Reply, type Turn, type TurnContext } from '../turn.ts';
import { peerView } from './view.ts';

/**
 * The peer that an ask names, or the refusal that takes its place. A tenant reaches only its own
 * (invariant A6).
 */
export function find(
  state: PartitionView,
  ask: { readonly tenant: TenantId; readonly peer: PeerId },
): { readonly record: PeerRecord } | { readonly refusal: Turn } {
  const { peers } = state.tenant(ask.tenant);
  const record = peers.records.get(ask.peer);
  if (record !== undefined) return { record };
  return { refusal: peers.damaged.has(ask.peer) ? damaged : refuse('not_found') };
}

export const damaged = refuse('internal', 'the record of this peer is damaged; contact support with the request id');

export const shown = (code: 'ok' | 'created', record: PeerRecord, context: TurnContext): Reply =>
  data(code, peerView(record, context, true));

/** The changes for a record of which its network must be notified. */
export const told = (record: PeerRecord | PeerTombstoneRecord): Changes => ({
  records: [record],
  deletes: [],
  events: [],
  effects: [{ kind: 'outbox' }],
});

/** The changes for a record whose network and files stay the same. */
export const kept = (record: PeerRecord): Changes => ({ records: [record], deletes: [], events: [], effects: [] });

export const withNext = (record: PeerRecord, next: Partial<PeerRecord>, { nowMs }: TurnContext): PeerRecord => ({
  ...record,
  filesChangedAtMs: nowMs,
  ...next,
  generation: record.generation + 1,
  updatedAtMs: nowMs,
});

export const changed = (record: PeerRecord, next: Partial<PeerRecord>, context: TurnContext): Turn => {
  const after = withNext(record, next, context);
  return answer(shown('ok', after, context), told(after));
};

export const revocation = (
  { serial, notAfterMs }: CertificateRef,
  reason: RevocationReason,
  { nowMs }: TurnContext,
): PeerRevocation => ({ serial, notAfterMs, atMs: nowMs, reason });

/**
 * Revokes the certificate in use, expired or not (network/learn.ts rests on it), and the others
 * that are still good.
 */
export const revokeAll = (record: PeerRecord, reason: RevocationReason, context: TurnContext): PeerRevocation[] => [
  ...stillRefused(record.revoked, context),
  ...unexpired(record.renewed, context).map((ref) => revocation(ref, reason, context)),
  revocation(record.certificate, reason, context),
];

export const unexpired = (refs: readonly CertificateRef[], { expiryMs }: TurnContext): CertificateRef[] =>
  refs.filter(({ notAfterMs }) => notAfterMs > expiryMs);

/** Drops expired revocations, but keeps those that the network has not acknowledged. */
const stillRefused = (revoked: readonly PeerRevocation[], { expiryMs }: TurnContext): PeerRevocation[] =>
  revoked.filter(({ toldIn, notAfterMs }) => toldIn === undefined || notAfterMs > expiryMs);
