/**
 * Networks, peers and what is said of them, for tests of the VPN's actors. No secret here is one.
 */
import { randomUUID } from 'node:crypto';
import type { PartitionState } from '../../../actors/domain/state.ts';
import { decideRead, decideWrite } from '../../../actors/domain/decide.ts';
import type { Turn, TurnContext } from '../../../actors/domain/turn.ts';
import type { NetworkName, PeerId, PeerTokenId, TenantId } from '../../../schemas/ids.ts';
import type { Ask, WriteAsk } from '../../../schemas/wire/asks.ts';
import type { KeptCertificate, LeaseRecord, NetworkRecord, NetworkSettings } from '../../../schemas/api/network.ts';
import type { Sealed } from '../../../schemas/records/sealed.ts';
import type { PeerKeys, PeerRecord, PeerToken } from '../../../schemas/api/peer.ts';
import { operation, tenantId } from '../support.ts';
import type { LooseRead, LooseWrite } from './partition.ts';
import { acme, apply, contextOf, fleetOf } from './records.ts';

export const home = 'home' as NetworkName;
export const peerId = (): PeerId => randomUUID() as PeerId;
export const bolt = tenantId('bolt');
export const sealed = (what: string, keyId = 'k1'): Sealed => `v1.${keyId}.wrapped.${what}` as Sealed;
export const farMs = 10 ** 14;

let serials = 0x1000;
export const certificate = (more: Partial<KeptCertificate> = {}): KeptCertificate => ({
  pem: 'PEM',
  serial: (++serials).toString(16),
  notBeforeMs: 0,
  notAfterMs: farMs,
  privateKey: sealed('certificate'),
  ...more,
});

export const settingsOf = (more: Partial<NetworkSettings> = {}): NetworkSettings => ({
  endpoint: 'vpn.example.com',
  wireguard_port: 51820,
  ipv4_pool: '10.86.0.0/24',
  ipv6_pool: 'fd00:86::/112',
  routes: ['0.0.0.0/0'],
  dns: [],
  mtu: null,
  proxy: null,
  tenants: null,
  ...more,
});

export const madeNetwork = (more: Partial<NetworkSettings> = {}) => ({
  settings: settingsOf(more),
  wireguard: { publicKey: `server ${randomUUID()}`, privateKey: sealed('wireguard') },
  ca: certificate({ privateKey: sealed('ca') }),
  server: certificate({ privateKey: sealed('server') }),
});

export const networkRecord = (more: Partial<NetworkSettings> = {}, name = home): NetworkRecord => ({
  kind: 'network',
  name,
  ...madeNetwork(more),
  insertedAtMs: 1,
  updatedAtMs: 1,
});

export const keysOf = (more: Partial<KeptCertificate> = {}): PeerKeys => ({
  wireguard: { publicKey: `peer ${randomUUID()}`, privateKey: sealed('wireguard'), presharedKey: sealed('preshared') },
  certificate: certificate(more),
});

/** Values of a peer after a rotation. */
export const newSecrets = (keys: PeerKeys = keysOf()) => ({ keys, p12Password: sealed('another'), tokens: [] });

export const token = (hash: string, more: Partial<PeerToken> = {}): PeerToken => ({
  id: randomUUID() as PeerTokenId,
  scope: 'download',
  hash,
  insertedAtMs: 1,
  expiresAtMs: farMs,
  ...more,
});

export const madePeer = (name: string, index: number, more: Partial<PeerRecord> = {}) => ({
  name,
  network: home,
  index,
  ipv4: `10.86.0.${index}`,
  ipv6: null,
  expiresAtMs: null,
  routes: null,
  dns: null,
  localId: `${name}.peers`,
  p12Password: sealed('password'),
  tokens: [],
  ...keysOf(),
  ...more,
});

export const peerRecord = (more: Partial<PeerRecord> = {}, name = 'phone', index = 2): PeerRecord => ({
  kind: 'peer',
  id: peerId(),
  tenant: acme,
  ...madePeer(name, index),
  enabled: true,
  renewed: [],
  revoked: [],
  generation: 1,
  told: 1,
  insertedAtMs: 1000,
  updatedAtMs: 1000,
  ...more,
});

export const leaseOf = (
  index: number,
  tenant: TenantId,
  peer: PeerId,
  state: LeaseRecord['state'] = { phase: 'reserved', atMs: 1_000_000 },
): LeaseRecord => ({ kind: 'lease', network: home, index, tenant, peer, state });

export const heldOf = (record: PeerRecord): LeaseRecord =>
  leaseOf(record.index, record.tenant, record.id, {
    phase: 'held',
    generation: record.generation,
    enabled: record.enabled,
    expiresAtMs: record.expiresAtMs,
    wireguardPublicKey: record.wireguard.publicKey,
    presharedKey: record.wireguard.presharedKey,
    localId: record.localId,
    certificates: [...record.renewed, record.certificate].map(({ serial, notAfterMs }) => ({ serial, notAfterMs })),
  });

export interface Said extends Turn {
  readonly code: Turn['reply']['code'];
  readonly body: unknown;
}

const said = (turn: Turn): Said => ({
  ...turn,
  code: turn.reply.code,
  body: turn.reply.body === '' ? undefined : (JSON.parse(turn.reply.body) as unknown),
});

/** Asks a state as its partition would, and applies what changes. */
export function write(
  state: PartitionState,
  ask: LooseWrite | Omit<LooseWrite, 'op'>,
  nowMs = 1_000_000,
  fleet = fleetOf(),
  more: Partial<TurnContext> = {},
): Said {
  const whole = { rid: 'r', budgetMs: 1, op: operation(), ...ask } as WriteAsk;
  const turn = decideWrite(state, whole, { ...contextOf(fleet, nowMs), ...more }, undefined);
  apply(state, turn.changes);
  return said(turn);
}

export const read = (
  state: PartitionState,
  ask: Exclude<LooseRead, { type: 'event.recent' | 'audit.recent' }>,
  nowMs = 1_000_000,
  fleet = fleetOf(),
): Said => said(decideRead(state, { rid: 'r', budgetMs: 1, ...ask }, contextOf(fleet, nowMs)));

export const dataOf = <T>({ body }: { readonly body: unknown }): T => (body as { data: T }).data;

export type Of<Type extends Ask['type']> = Extract<Ask, { type: Type }>;
