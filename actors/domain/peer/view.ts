/** A peer as the API shows it, and as its network learns about it. Pure. */
import { timestamp } from '../../../lib/time/timestamp.ts';
import { limits } from '../../../schemas/limits.ts';
import type { CertificateRef } from '../../../schemas/api/network.ts';
import type { PeerNotice } from '../../../schemas/wire/asks.ts';
import type { PeerSeen } from '../../../schemas/wire/host.ts';
import {
  peerStateOf,
  type PeerLink,
  type PeerProblem,
  type PeerRecord,
  type PeerRevocation,
  type PeerToken,
  type PeerTombstoneRecord,
} from '../../../schemas/api/peer.ts';
import type { PeerTokenView, PeerView } from '../../../schemas/api/peer.ts';
import type { TurnContext } from '../turn.ts';

export const tokenView = ({ id, scope, insertedAtMs, expiresAtMs }: PeerToken): PeerTokenView => ({
  id,
  scope,
  inserted_at: timestamp(insertedAtMs),
  expires_at: timestamp(expiresAtMs),
});

export const aliveTokens = ({ tokens }: Pick<PeerRecord, 'tokens'>, nowMs: number): PeerToken[] =>
  tokens.filter(({ expiresAtMs }) => expiresAtMs > nowMs);

/** The first browser may repeat for a while, also when the link could no longer be redeemed. */
export const linkEndMs = ({ redeemed, expiresAtMs }: PeerLink): number =>
  redeemed === undefined ? expiresAtMs : redeemed.atMs + limits.linkRepeatMs;

export const aliveLinks = ({ links = [], wireguard }: PeerRecord, nowMs: number): PeerLink[] =>
  links.filter((link) => link.publicKey === wireguard.publicKey && linkEndMs(link) > nowMs);

/** @param showsEndpoint `true` if the asker may know from where the device connects */
export const peerView = (
  record: PeerRecord,
  { nowMs, peerSeen }: Pick<TurnContext, 'nowMs' | 'peerSeen'>,
  showsEndpoint: boolean,
): PeerView => ({
  id: record.id,
  tenant_id: record.tenant,
  name: record.name,
  network: record.network,
  state: peerStateOf(record, nowMs),
  enabled: record.enabled,
  expires_at: record.expiresAtMs === null ? null : timestamp(record.expiresAtMs),
  ipv4: record.ipv4,
  ipv6: record.ipv6,
  routes: record.routes === null ? null : [...record.routes],
  dns: record.dns === null ? null : [...record.dns],
  public_key: record.wireguard.publicKey,
  certificate: { serial: record.certificate.serial, not_after: timestamp(record.certificate.notAfterMs) },
  tokens: aliveTokens(record, nowMs).map(tokenView),
  ...seenView(peerSeen?.(record.id), showsEndpoint),
  files_changed_at: timestamp(record.filesChangedAtMs ?? record.updatedAtMs),
  problem: record.problem === undefined ? null : adviceOn[record.problem],
  inserted_at: timestamp(record.insertedAtMs),
  updated_at: timestamp(record.updatedAtMs),
});

const seenView = (seen: PeerSeen | undefined, showsEndpoint: boolean) => ({
  last_handshake_at: typeof seen?.handshake_at_ms === 'number' ? timestamp(seen.handshake_at_ms) : null,
  rx_bytes: seen?.rx_bytes ?? null,
  tx_bytes: seen?.tx_bytes ?? null,
  endpoint: showsEndpoint ? (seen?.endpoint ?? null) : null,
});

const adviceOn: Readonly<Record<PeerProblem, string>> = {
  address: 'another peer has its address since the cluster was restored; remove this peer and make another',
  keys: 'its certificate was revoked before the cluster was restored; rotate its keys',
  network: 'its network does not exist; remove this peer, or have an operator make the network again',
};

const refOf = ({ serial, notAfterMs }: CertificateRef): CertificateRef => ({ serial, notAfterMs });

/** Revocations that the network has not acknowledged, in this incarnation of the cluster. */
export const unacknowledgedOf = (revoked: readonly PeerRevocation[], incarnation: number): PeerRevocation[] =>
  revoked.filter(({ toldIn }) => toldIn !== incarnation);

/**
 * Fields by name: the record's secrets are none of the network's business, but for the preshared
 * key.
 */
export function peerNoticeOf(record: PeerRecord | PeerTombstoneRecord, incarnation: number): PeerNotice {
  const { generation } = record;
  const revoked = unacknowledgedOf(record.revoked, incarnation).map(
    ({ serial, notAfterMs, atMs, reason }): PeerRevocation => ({
      serial,
      notAfterMs,
      atMs,
      reason,
    }),
  );
  if (record.kind === 'peer_tombstone') return { there: false, generation, revoked };
  return {
    there: true,
    index: record.index,
    generation,
    enabled: record.enabled,
    expiresAtMs: record.expiresAtMs,
    wireguardPublicKey: record.wireguard.publicKey,
    presharedKey: record.wireguard.presharedKey,
    localId: record.localId,
    certificates: [...record.renewed, record.certificate].map(refOf),
    revoked,
  };
}
