/**
 * Sealed secrets of a partition, to be sealed again under another key. Actors know only the key of
 * a sealed secret: the text is `v1.<key id>.…`. Pure.
 */
import { fill } from '../../../lib/fill.ts';
import { limits } from '../../../schemas/limits.ts';
import type { SigningKeyRecord } from '../../../schemas/api/keys/signing-key.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import type { NetworkRecord } from '../../../schemas/api/network.ts';
import type { PeerRecord } from '../../../schemas/api/peer.ts';
import type { Sealed, SecretPlace, StaleSecret } from '../../../schemas/records/sealed.ts';
import type { LoginRecord, SecretRecord } from '../../../schemas/api/secret.ts';
import { withNext } from '../peer/transitions.ts';
import type { PartitionView } from '../state.ts';
import type { TenantView } from '../tenant/state.ts';
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

const placeOfTenants = (record: SecretRecord | LoginRecord): SecretPlace =>
  record.kind === 'secret'
    ? { of: 'secret', tenant: record.tenant, name: record.name, version: record.version }
    : { of: 'login', tenant: record.tenant, registry: record.registry, version: record.version };

const isStale = ({ sealed }: Pick<SecretRecord, 'sealed'>, keyId: string): boolean => sealed.split('.', 2)[1] !== keyId;

function* ofTenants({ secrets: { values, logins } }: TenantView): Generator<SecretRecord | LoginRecord, void, void> {
  for (const versions of values.values()) {
    for (const record of versions.values()) if (record !== null) yield record;
  }
  for (const record of logins.values()) if (record !== null) yield record;
}

/** Record by record, so that a page is replaced in as few of them as may be. */
function* staleByRecord(state: PartitionView, { keyId }: Of<'secret.stale'>) {
  for (const { record } of state.vpn.networks()) {
    if (record !== undefined) yield { record, secrets: [...staleOfNetwork(record, keyId)] };
  }
  for (const record of state.signingKeys().values()) {
    if (record === null) continue;
    const { id, sealed } = record;
    yield { record, secrets: isStale(record, keyId) ? [{ place: { of: 'signing_key' as const, id }, sealed }] : [] };
  }
  for (const tenant of state.tenants()) {
    for (const record of tenant.peers.records.values()) yield { record, secrets: [...staleOfPeer(record, keyId)] };
    for (const record of ofTenants(tenant)) {
      const { sealed } = record;
      yield { record, secrets: isStale(record, keyId) ? [{ place: placeOfTenants(record), sealed }] : [] };
    }
  }
}

type Holder = PeerRecord | NetworkRecord | SecretRecord | LoginRecord | SigningKeyRecord;

/** Bytes of a record in a journal entry. */
const sizeOf = (record: Holder): number => Buffer.byteLength(JSON.stringify(record));

/** A page holds what one turn can replace: its records go into one journal entry. */
export function stale(state: PartitionView, ask: Of<'secret.stale'>): Turn {
  const bounds = { bytes: limits.recordBytes, items: limits.vpnPage };
  const { values } = fill(staleByRecord(state, ask), bounds, ({ record, secrets }) =>
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
  readonly record: Holder;
  readonly count: number;
}

type Item = Of<'secret.replace'>['items'][number];

/** The record of a place, with its items replaced; `undefined` if none of them fits any more. */
function replacedIn(state: PartitionView, items: readonly Item[], context: TurnContext): Replaced | undefined {
  const place = items[0]?.place;
  switch (place?.of) {
    case undefined:
      return undefined;
    case 'network':
      return replacedOfNetwork(state, place, items);
    case 'peer':
      return replacedOfPeer(state, place, items, context);
    case 'secret':
    case 'login':
      return replacedOfTenant(state, place, items);
    case 'signing_key':
      return replacedIfThere(state.signingKeys().get(place.id), items);
  }
}

type At<Kind extends SecretPlace['of']> = Extract<SecretPlace, { of: Kind }>;

function replacedOfTenant(
  state: PartitionView,
  place: At<'secret' | 'login'>,
  items: readonly Item[],
): Replaced | undefined {
  const { values, logins } = state.tenant(place.tenant).secrets;
  const record = place.of === 'secret' ? values.get(place.name)?.get(place.version) : logins.get(place.registry);
  return record?.version === place.version ? replacedIfThere(record, items) : undefined;
}

/** A record with one secret. */
function replacedIfThere(
  record: SecretRecord | LoginRecord | SigningKeyRecord | null | undefined,
  [item]: readonly Item[],
): Replaced | undefined {
  if (record == null) return undefined;
  const sealed = swap(record.sealed, item);
  return { record: { ...record, sealed }, count: sealed === record.sealed ? 0 : 1 };
}

function replacedOfNetwork(state: PartitionView, place: At<'network'>, items: readonly Item[]): Replaced | undefined {
  const { record } = state.vpn.network(place.network);
  if (record === undefined) return undefined;
  const map = new Map(items.flatMap((item) => (item.place.of === 'network' ? [[item.place.field, item]] : [])));
  const next = replacedInNetwork(record, map);
  return { record: next, count: countChanged(secretsOfNetwork(record), secretsOfNetwork(next)) };
}

function replacedOfPeer(
  state: PartitionView,
  place: At<'peer'>,
  items: readonly Item[],
  context: TurnContext,
): Replaced | undefined {
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

/** Identifies the record of a place. */
function ownerOf(place: SecretPlace): string {
  switch (place.of) {
    case 'peer':
      return `peer ${place.tenant} ${place.peer}`;
    case 'network':
      return `network ${place.network}`;
    case 'secret':
      return `secret ${place.tenant} ${place.name} ${place.version}`;
    case 'signing_key':
      return `signing_key ${place.id}`;
    case 'login':
      return `login ${place.tenant} ${place.registry}`;
  }
}

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
