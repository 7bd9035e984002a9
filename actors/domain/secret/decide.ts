/**
 * Sealed secrets of a partition, to be sealed again under another key. Of a secret, actors know
 * only its key: the text is `v1.<key id>.…`. Pure.
 */
import { fill } from '../../../lib/fill.ts';
import { limits } from '../../../schemas/limits.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import type { NetworkRecord, Sealed } from '../../../schemas/api/network.ts';
import type { PeerRecord, SecretPlace, StaleSecret } from '../../../schemas/api/peer.ts';
import { withNext } from '../peer/transitions.ts';
import type { PartitionView } from '../state.ts';
import { answer, data, noChanges, type Turn, type TurnContext } from '../turn.ts';

type Of<Type extends Ask['type']> = Extract<Ask, { type: Type }>;
type OfPeer = Extract<SecretPlace, { of: 'peer' }>['field'];
type OfNetwork = Extract<SecretPlace, { of: 'network' }>['field'];

const secretsOfPeer = ({ wireguard, certificate, p12Password }: PeerRecord): Record<OfPeer, Sealed> => ({
  wireguard: wireguard.privateKey,
  preshared: wireguard.presharedKey,
  certificate: certificate.privateKey,
  password: p12Password,
});

const secretsOfNetwork = ({ wireguard, ca, server }: NetworkRecord): Record<OfNetwork, Sealed> => ({
  wireguard: wireguard.privateKey,
  ca: ca.privateKey,
  server: server.privateKey,
});

function* staleOfPeer(record: PeerRecord, keyId: string): Generator<StaleSecret, void, void> {
  const { tenant, id: peer } = record;
  const secrets = secretsOfPeer(record);
  for (const field of ['wireguard', 'preshared', 'certificate', 'password'] as const) {
    const sealed = secrets[field];
    if (sealed.split('.', 2)[1] !== keyId) yield { place: { of: 'peer', tenant, peer, field }, sealed };
  }
}

function* staleOfNetwork(record: NetworkRecord, keyId: string): Generator<StaleSecret, void, void> {
  const secrets = secretsOfNetwork(record);
  for (const field of ['wireguard', 'ca', 'server'] as const) {
    const sealed = secrets[field];
    if (sealed.split('.', 2)[1] !== keyId) yield { place: { of: 'network', network: record.name, field }, sealed };
  }
}

/** Record by record, so that a page is replaced in as few of them as may be. */
function* staleByRecord(state: PartitionView, keyId: string) {
  for (const { record } of state.vpn.networks()) {
    if (record !== undefined) yield { record, secrets: [...staleOfNetwork(record, keyId)] };
  }
  for (const { peers } of state.tenants()) {
    for (const record of peers.records.values()) yield { record, secrets: [...staleOfPeer(record, keyId)] };
  }
}

/** How much of a journal entry a record takes. */
const sizeOf = (record: PeerRecord | NetworkRecord): number => Buffer.byteLength(JSON.stringify(record));

/** A page holds what one turn can replace: its records go into one journal entry. */
export function stale(state: PartitionView, ask: Of<'secret.stale'>): Turn {
  const bounds = { bytes: limits.recordBytes, items: limits.vpnPage };
  const { values } = fill(staleByRecord(state, ask.keyId), bounds, ({ record, secrets }) =>
    secrets.length === 0 ? undefined : { value: secrets, bytes: sizeOf(record), items: secrets.length },
  );
  return answer(data('ok', values.flat()));
}

interface Replacement {
  readonly before: Sealed;
  readonly after: Sealed;
}

const swap = (sealed: Sealed, item: Replacement | undefined): Sealed =>
  item !== undefined && item.before === sealed ? item.after : sealed;

type Replacements<Field extends string> = ReadonlyMap<Field, Replacement>;

function replacedInPeer(record: PeerRecord, items: Replacements<OfPeer>): PeerRecord {
  const { wireguard, certificate, p12Password } = record;
  return {
    ...record,
    wireguard: {
      ...wireguard,
      privateKey: swap(wireguard.privateKey, items.get('wireguard')),
      presharedKey: swap(wireguard.presharedKey, items.get('preshared')),
    },
    certificate: { ...certificate, privateKey: swap(certificate.privateKey, items.get('certificate')) },
    p12Password: swap(p12Password, items.get('password')),
  };
}

function replacedInNetwork(record: NetworkRecord, items: Replacements<OfNetwork>): NetworkRecord {
  const { wireguard, ca, server } = record;
  return {
    ...record,
    wireguard: { ...wireguard, privateKey: swap(wireguard.privateKey, items.get('wireguard')) },
    ca: { ...ca, privateKey: swap(ca.privateKey, items.get('ca')) },
    server: { ...server, privateKey: swap(server.privateKey, items.get('server')) },
  };
}

function countChanged<Field extends string>(before: Record<Field, Sealed>, after: Record<Field, Sealed>): number {
  let count = 0;
  for (const field in before) if (before[field] !== after[field]) count++;
  return count;
}

interface Replaced {
  readonly record: PeerRecord | NetworkRecord;
  readonly count: number;
}

type Item = Of<'secret.replace'>['items'][number];

/**
 * The record that a place is in, with all of the items that are for it; undefined where none of
 * them fits any more.
 */
function replacedIn(state: PartitionView, items: readonly Item[], context: TurnContext): Replaced | undefined {
  const place = items[0]?.place;
  if (place === undefined) return undefined;
  if (place.of === 'network') {
    const { record } = state.vpn.network(place.network);
    if (record === undefined) return undefined;
    const map = new Map(items.flatMap((item) => (item.place.of === 'network' ? [[item.place.field, item]] : [])));
    const next = replacedInNetwork(record, map);
    return { record: next, count: countChanged(secretsOfNetwork(record), secretsOfNetwork(next)) };
  }
  const record = state.tenant(place.tenant).peers.records.get(place.peer);
  if (record === undefined) return undefined;
  const map = new Map(items.flatMap((item) => (item.place.of === 'peer' ? [[item.place.field, item]] : [])));
  const next = replacedInPeer(record, map);
  // The network's copy of the preshared key follows by telling.
  return {
    record: withNext(next, { updatedAtMs: record.updatedAtMs }, context),
    count: countChanged(secretsOfPeer(record), secretsOfPeer(next)),
  };
}

const ownerOf = (place: SecretPlace): string =>
  place.of === 'peer' ? `peer ${place.tenant} ${place.peer}` : `network ${place.network}`;

/**
 * Compare-and-set, secret by secret; what one journal entry does not hold is left for the next
 * time.
 */
export function replace(state: PartitionView, ask: Of<'secret.replace'>, context: TurnContext): Turn {
  const byOwner = new Map<string, Item[]>();
  for (const item of ask.items) {
    const owner = ownerOf(item.place);
    byOwner.set(owner, [...(byOwner.get(owner) ?? []), item]);
  }
  const { values } = fill(byOwner.values(), { bytes: limits.recordBytes }, (items) => {
    const found = replacedIn(state, items, context);
    return found === undefined || found.count === 0 ? undefined : { value: found, bytes: sizeOf(found.record) };
  });
  const records = values.map(({ record }) => record);
  const replaced = values.reduce((sum, { count }) => sum + count, 0);
  const reply = data('ok', { replaced });
  return answer(reply, { ...noChanges, records, effects: [{ kind: 'outbox' }] });
}
