/**
 * VPN networks: made, set, certified, removed, shown. Addresses are in allocate.ts and learn.ts.
 * Pure: see turn.ts.
 */
import { isDeepStrictEqual } from 'node:util';
import { fill, line } from '../../../lib/fill.ts';
import { keys } from '../../../schemas/records/buckets.ts';
import { formatCidr, hostCidr, overlap, parseCidr, type Cidr } from '../../../schemas/cidr.ts';
import { ipv6RangeOf } from '../../../schemas/tenant-network.ts';
import { limits } from '../../../schemas/limits.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import {
  poolsOf,
  type KeptCertificate,
  type NetworkRecord,
  type RevocationEntry,
} from '../../../schemas/api/network.ts';
import { peerStateOf } from '../../../schemas/api/peer.ts';
import type { KnownNetwork } from './state.ts';
import { materialOf } from '../material.ts';
import { pageByKey } from '../page.ts';
import type { PartitionView } from '../state.ts';
import {
  answer,
  conflict,
  invalid,
  noChanges,
  repeatable,
  type Changes,
  type Effect,
  type Reply,
  type Turn,
  type TurnContext,
} from '../turn.ts';
import { damaged, find, type Found } from './find.ts';
import { networkView, serverOf } from './view.ts';

export { learn } from './learn.ts';
export { release, reserve } from './allocate.ts';

type Of<Type extends Ask['type']> = Extract<Ask, { type: Type }>;

const stored = (record: NetworkRecord): Changes => ({ ...noChanges, records: [record] });

/** A repeated ask is answered from the record. */
const shown = (code: 'ok' | 'created', record: NetworkRecord, { allocated }: KnownNetwork): Reply =>
  repeatable(code, networkView(record, allocated));

export function create(state: PartitionView, ask: Of<'network.create'>, context: TurnContext): Turn {
  const network = state.vpn.network(ask.network);
  if (network.isDamaged) return damaged;
  const { record: before } = network;
  if (before !== undefined) {
    // The answer to this very request was lost, and it is asked again.
    const isOurs = before.wireguard.publicKey === ask.made.wireguard.publicKey;
    return isOurs ? answer(shown('created', before, network)) : conflict('exists', 'a network with this name exists');
  }
  const record: NetworkRecord = {
    ...ask.made,
    kind: 'network',
    name: ask.network,
    insertedAtMs: context.nowMs,
    updatedAtMs: context.nowMs,
  };
  return answer(shown('created', record, network), stored(record));
}

/** `true` if both are the same pool, however they are written. */
function isSamePool(one: string | null, other: string | null): boolean {
  const [first, second] = [one, other].map((text) => (text === null ? undefined : parseCidr(text)));
  return one === other || (first !== undefined && second !== undefined && formatCidr(first) === formatCidr(second));
}

/** Keeps the record's seal of the key: it may have been sealed again since the gateway read. */
const sameKey = (before: KeptCertificate, next: KeptCertificate): KeptCertificate => ({
  ...next,
  privateKey: before.privateKey,
});

/** Addresses are allocated by their place in the pools, so these stay what they are. */
export function put(state: PartitionView, ask: Of<'network.put'>, context: TurnContext): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  const { record } = found;
  const { server } = ask;
  if (record.host !== undefined && ask.settings.tenant_network === false) return aimless;
  const settings = ask.keepsTenants === true ? { ...ask.settings, tenants: record.settings.tenants } : ask.settings;
  const { ipv4_pool, ipv6_pool } = record.settings;
  if (!isSamePool(settings.ipv4_pool, ipv4_pool) || !isSamePool(settings.ipv6_pool, ipv6_pool)) {
    return conflict('unsupported', 'the pools of a network never change');
  }
  if (record.nameConstraints === true && settings.endpoint !== record.settings.endpoint) {
    return conflict(
      'unsupported',
      'the authority of this network can certify only its present endpoint; make another network',
    );
  }
  // The certificate was made for the endpoint that the gateway read; another request has changed
  // the endpoint since.
  if (server === null && settings.endpoint !== record.settings.endpoint) {
    return conflict('changed', 'the network was changed meanwhile; read it again');
  }
  const next = {
    ...record,
    settings,
    server: server === null ? record.server : sameKey(record.server, server),
    updatedAtMs: context.nowMs,
  };
  return changed(found, next);
}

/** The fields that files of peers show; a proxy that is an address may have a route. */
const shownInFiles = ({ settings, wireguard, ca, host }: NetworkRecord) => {
  const { tenants: _tenants, proxy, tenant_network: joins = true, ...others } = settings;
  const isServed = joins && host !== undefined;
  const route = isServed || proxy === null ? undefined : hostCidr(proxy.host);
  return { ...others, isServed, route, key: wireguard.publicKey, ca: ca.pem };
};

const noted = (before: NetworkRecord, after: NetworkRecord): NetworkRecord => ({
  ...after,
  filesChangedAtMs: isDeepStrictEqual(shownInFiles(before), shownInFiles(after))
    ? (before.filesChangedAtMs ?? before.updatedAtMs)
    : after.updatedAtMs,
});

/** Stores the change, and notifies the other partitions if it concerns them. */
function changed({ network, record: before }: Found, next: NetworkRecord): Turn {
  const after = noted(before, next);
  return answer(shown('ok', after, network), { ...stored(after), effects: toldOf(before, after) });
}

function toldOf(before: NetworkRecord, after: NetworkRecord): Effect[] {
  const [was, is] = [serverOf(before), serverOf(after)];
  return isDeepStrictEqual(was, is) ? [] : [{ kind: 'server', network: after.name, server: is ?? null }];
}

export function serve(state: PartitionView, ask: Of<'network.serve'>, context: TurnContext): Turn {
  const { fleet, cluster, tenantIpv4, nowMs } = context;
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  const { network, record } = found;
  const { host: _before, ...rest } = record;
  const next: NetworkRecord = { ...rest, ...(ask.by === null ? {} : { host: ask.by }), updatedAtMs: nowMs };
  if (ask.by === (record.host ?? null)) return answer(shown('ok', record, network));
  const condition = ask.by === null ? 'up' : fleet.condition(ask.by);
  if (condition === 'removed' || condition === 'fenced')
    return invalid({ 'host_keys.0': ['is no host of this cluster; enrol it first'] });
  if (ask.by !== null && record.settings.tenant_network === false) return aimless;
  const cidrsOf = (pools: Parameters<typeof poolsOf>[0]): Cidr[] =>
    poolsOf(pools).flatMap((text) => parseCidr(text) ?? []);
  const own = cidrsOf(record.settings);
  const ofContainers = [tenantIpv4?.range, ipv6RangeOf(cluster)].flatMap((text = '') => parseCidr(text) ?? []);
  if (ask.by !== null && ofContainers.some((range) => own.some((pool) => overlap(pool, range))))
    return conflict('overlaps', 'containers have addresses in its pools; make a network with other pools');
  for (const other of fleet.servers()) {
    if (other.host !== ask.by || other.network === record.name) continue;
    if (cidrsOf(other).some((taken) => own.some((pool) => overlap(pool, taken))))
      return conflict('overlaps', `the host serves the network ${other.network}, whose pools overlap`);
  }
  return changed(found, next);
}

const aimless = conflict(
  'unsupported',
  'a host leads peers to the tenant network alone, so a network that it serves has `tenant_network` true',
);

/** Compare-and-set on the serial. */
export function certify(state: PartitionView, ask: Of<'network.certify'>, context: TurnContext): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  const { record } = found;
  const { serial } = record[ask.which];
  if (serial === ask.certificate.serial) return answer(repeatable('ok', record));
  if (serial !== ask.replaces) return conflict('changed', 'the certificate was replaced meanwhile; read it again');
  const certificate = sameKey(record[ask.which], ask.certificate);
  const next = noted(record, { ...record, [ask.which]: certificate, updatedAtMs: context.nowMs });
  return answer(repeatable('ok', next), { ...stored(next), effects: toldOf(record, next) });
}

/** Its revocations expire by themselves (sweep.ts). */
export function remove(state: PartitionView, ask: Of<'network.remove'>): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  if (found.network.allocated > 0) return conflict('in_use', 'the network has peers; remove them first');
  const { name, host } = found.record;
  const effects: Effect[] = host === undefined ? [] : [{ kind: 'server', network: name, server: null }];
  return answer({ code: 'no_content', body: '' }, { ...noChanges, deletes: [keys.network(ask.network)], effects });
}

export function get(state: PartitionView, ask: Of<'network.get'>): Turn {
  const found = find(state, ask);
  return 'refusal' in found ? found.refusal : answer(shown('ok', found.record, found.network));
}

export function list(state: PartitionView, ask: Of<'network.list'>): Turn {
  const known = [...state.vpn.networks()].flatMap(({ record, allocated }) =>
    record === undefined ? [] : [{ record, allocated }],
  );
  return pageByKey(known, {
    ...ask,
    maxBytes: limits.vpnPageBytes,
    keyOf: ({ record }) => record.name,
    render: ({ record, allocated }) => JSON.stringify(networkView(record, allocated)),
  });
}

export function material(state: PartitionView, ask: Of<'network.material'>): Turn {
  const found = find(state, ask);
  return 'refusal' in found ? found.refusal : answer(materialOf(found.record, ask.known));
}

/** Leases that a peer holds; `next` is the first of the next page. */
export function leases(state: PartitionView, ask: Of<'network.leases'>): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  const bounds = { bytes: limits.vpnPageBytes, items: limits.vpnPage };
  const { values, next } = fill(found.network.leases(ask.after), bounds, (lease) =>
    lease.state.phase === 'held' ? line(JSON.stringify(lease)) : undefined,
  );
  return answer({ code: 'ok', body: `{"data":[${values.join(',')}],"next":${next?.index ?? null}}` });
}

/** The index of the first serial that is not before this one. */
function positionOf(serials: readonly string[], serial: string): number {
  let [from, to] = [0, serials.length];
  while (from < to) {
    const middle = (from + to) >> 1;
    if ((serials[middle] ?? '') < serial) from = middle + 1;
    else to = middle;
  }
  return from;
}

/** The entry of a serial in a revocation list; `undefined` if it need not be there, or not yet. */
function entryOf(network: KnownNetwork, serial: string, nowMs: number): RevocationEntry | undefined {
  const { revoked, pausable } = network.refusable();
  const record = revoked.get(serial);
  // Its record is damaged, and the reason and time are lost: assume the worst, for ever.
  if (record === null) return { serial, atMs: 0, reason: 'keyCompromise' };
  if (record !== undefined) {
    return record.notAfterMs > nowMs ? { serial, atMs: record.atMs, reason: record.reason } : undefined;
  }
  const lease = pausable.get(serial);
  const state = lease?.state;
  if (lease === undefined || state?.phase !== 'held') return undefined;
  const peerState = peerStateOf(state, nowMs);
  if (peerState === 'active' && network.serves(lease.tenant)) return undefined;
  const certificate = state.certificates.find((ref) => ref.serial === serial);
  if (certificate === undefined || certificate.notAfterMs <= nowMs) return undefined;
  const atMs = peerState === 'expired' ? (state.expiresAtMs ?? nowMs) : nowMs;
  return { serial, atMs, reason: 'certificateHold' };
}

/**
 * Certificates that are revoked, or of a peer that is disabled, expired or of a tenant that is not
 * served, and that have not ended by themselves.
 */
export function revocations(state: PartitionView, ask: Of<'network.revocations'>, { nowMs }: TurnContext): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  const { network } = found;
  const { serials } = network.refusable();
  const entries: RevocationEntry[] = [];
  let next: string | null = null;
  for (let position = positionOf(serials, ask.after); position < serials.length; position++) {
    const serial = serials[position] ?? '';
    const entry = entryOf(network, serial, nowMs);
    if (entry === undefined) continue;
    if (entries.length === limits.vpnPage) {
      next = serial;
      break;
    }
    entries.push(entry);
  }
  return answer({ code: 'ok', body: JSON.stringify({ data: entries, next, now_ms: nowMs }) });
}
