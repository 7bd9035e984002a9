/**
 * Peers of VPN networks in virtual time: clients that make, change and remove them, and what must
 * hold in the end.
 */
import { PartitionState } from '../../../actors/domain/state.ts';
import { records as recordFormat } from '../../../actors/domain/domain.ts';
import type { Commit } from '../../../actors/runtime/journal/codec.ts';
import { readMark, readPartition } from '../../../actors/runtime/journal/load.ts';
import type { Mark } from '../../../actors/runtime/journal/mark.ts';
import { readSealed } from '../../../actors/runtime/journal/read-journal.ts';
import { createJetStreamStore, createJournalStore } from '../../../actors/runtime/store/jetstream-store.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import { systemClock } from '../../../lib/time/clock.ts';
import { createSlices, runAtOnce } from '../../../lib/time/slices.ts';
import type { NatsConnection } from '@nats-io/transport-node';
import { buckets } from '../../../schemas/records/buckets.ts';
import type { OperationId, PeerId, TenantId } from '../../../schemas/ids.ts';
import type { Reservation } from '../../../schemas/api/network.ts';
import { partitionOf } from '../../../schemas/wire/subjects.ts';
import type { Random } from '../../actors/support/random.ts';
import { noLedger } from '../../actors/support/records.ts';
import { certificate, home, keysOf, madeNetwork, madePeer, newSecrets } from '../../actors/support/vpn.ts';
import type { PeerKeys } from '../../../schemas/api/peer.ts';
import type { Gateway } from './gateway.ts';

// The same seed must give the same run, so nothing here may differ between runs.
const certificateFrom = (newToken: () => string) => certificate({ serial: newToken().replaceAll('-', '') });

function keysFrom(newToken: () => string): PeerKeys {
  const { wireguard } = keysOf();
  return { wireguard: { ...wireguard, publicKey: newToken() }, certificate: certificateFrom(newToken) };
}

/** So few addresses that each is allocated many times. */
export function smallNetwork(newToken: () => string) {
  const made = madeNetwork({ ipv4_pool: '10.86.0.0/29' });
  return {
    ...made,
    wireguard: { ...made.wireguard, publicKey: newToken() },
    ca: certificateFrom(newToken),
    server: certificateFrom(newToken),
  };
}

interface KnownPeer {
  readonly tenant: TenantId;
  readonly peer: PeerId;
  serial: string;
}

/** Makes, changes and removes peers, as the handlers of a gateway do, until it is stopped. */
export async function liveOnVpn(
  random: Random,
  gateway: Gateway,
  newToken: () => string,
  tenants: readonly TenantId[],
  isOver: () => boolean,
): Promise<void> {
  const known: KnownPeer[] = [];
  let names = 0;
  const asker = () => ({ rid: newToken(), op: newToken() as OperationId });

  async function create(): Promise<void> {
    const tenant = random.pick(tenants as readonly [TenantId, ...TenantId[]]);
    const peer = newToken() as PeerId;
    const reserved = await gateway.ask('write', {
      type: 'network.reserve',
      network: home,
      by: { tenant, peer },
      ...asker(),
    });
    if (reserved.code !== 'ok') return;
    const { index } = (JSON.parse(reserved.body) as { data: Reservation }).data;
    const made = madePeer(`${newToken()}-${names++}`, index, keysFrom(newToken));
    const { code } = await gateway.ask('write', { type: 'peer.create', tenant, peer, made, ...asker() });
    if (code === 'created' || code === 'timeout') known.push({ tenant, peer, serial: made.certificate.serial });
  }

  async function change(one: KnownPeer): Promise<void> {
    const peer = { tenant: one.tenant, peer: one.peer, ...asker() };
    switch (random.below(4)) {
      case 0:
        await gateway.ask('write', { type: 'peer.update', update: { enabled: random.once(2) }, ...peer });
        return;
      case 1: {
        const keys = keysFrom(newToken);
        const { code } = await gateway.ask('write', {
          type: 'peer.rotate',
          replaces: one.serial,
          ...newSecrets(keys),
          ...peer,
        });
        if (code === 'ok') one.serial = keys.certificate.serial;
        return;
      }
      case 2: {
        const next = certificateFrom(newToken);
        const { code } = await gateway.ask('write', {
          type: 'peer.certify',
          replaces: one.serial,
          certificate: next,
          ...peer,
        });
        if (code === 'ok') one.serial = next.serial;
        return;
      }
      default:
        await gateway.ask('write', { type: 'peer.remove', ...peer });
        known.splice(known.indexOf(one), 1);
    }
  }

  while (!isOver()) {
    const one = known[random.below(known.length + 1)];
    await (one === undefined ? create() : change(one));
    await sleep(1 + random.below(150));
  }
}

/** Records as a load would read them, but without a seal: their members go on. */
async function journalled(nc: NatsConnection, partition: number, mark: Mark): Promise<Commit[]> {
  const commits: Commit[] = [];
  for (const member of mark.journals) {
    const store = createJournalStore(nc, member, () => '');
    const { revision } = await store.readEpoch();
    const journal = await readSealed(
      { store, member },
      revision,
      createSlices(systemClock),
      new AbortController().signal,
    );
    commits.push(...runAtOnce(journal.commitsOf(partition)));
  }
  return commits;
}

/** The records in the buckets, as a load would read them now. */
export async function storedStates(
  nc: NatsConnection,
  partitions: number,
  incarnation: number,
  newToken: () => string,
): Promise<PartitionState[]> {
  const states: PartitionState[] = [];
  for (let partition = 0; partition < partitions; partition++) {
    const store = createJetStreamStore(nc, buckets.state.bucket(partition), newToken);
    const { revision } = await store.readEpoch();
    const values = await store.load(revision);
    const { records } = readPartition(values, await journalled(nc, partition, readMark(values)), recordFormat);
    const state = new PartitionState(noLedger, { epoch: 0, incarnation });
    for (const record of records) state.put(record);
    states.push(state);
  }
  return states;
}

const networkOf = (states: readonly PartitionState[]) => states[partitionOf(home, states.length)]?.vpn.network(home);

/** Certificates that a peer or the network records as revoked. */
export function refusedIn(states: readonly PartitionState[], tenants: readonly TenantId[]): Set<string> {
  const refused = new Set<string>();
  for (const serial of networkOf(states)?.refusable().revoked.keys() ?? []) refused.add(serial);
  for (const tenant of tenants) {
    const peers = states[partitionOf(tenant, states.length)]?.tenant(tenant).peers;
    for (const { revoked } of [...(peers?.records.values() ?? []), ...(peers?.tombstones.values() ?? [])])
      for (const { serial } of revoked) refused.add(serial);
  }
  return refused;
}

/**
 * The contradictions between peers and their network; there must be none when every change has been
 * sent.
 */
export function vpnFaults(
  states: readonly PartitionState[],
  tenants: readonly TenantId[],
  refused: ReadonlySet<string>,
): string[] {
  const network = networkOf(states);
  if (network === undefined) return ['there is no network'];
  const faults: string[] = [];
  const peers = tenants.flatMap((tenant) => [
    ...(states[partitionOf(tenant, states.length)]?.tenant(tenant).peers.records.values() ?? []),
  ]);
  for (const { index, tenant, peer, state } of network.leases(0)) {
    const isThere = peers.some((one) => one.tenant === tenant && one.id === peer);
    if (state.phase === 'held' && !isThere) faults.push(`address ${index} is allocated to ${peer}, which is not there`);
  }
  const holders = new Map<number, string>();
  for (const { id, index, tenant, problem } of peers) {
    if (problem !== undefined) continue;
    const other = holders.get(index);
    if (other !== undefined) faults.push(`address ${index} is of two peers, ${other} and ${id}, and neither says so`);
    holders.set(index, id);
    const lease = network.lease(index);
    if (lease?.state.phase !== 'held' || lease.tenant !== tenant || lease.peer !== id)
      faults.push(`the network has address ${index} otherwise than its peer ${id}`);
  }
  const listed = new Set(network.refusable().serials);
  for (const serial of refused) if (!listed.has(serial)) faults.push(`${serial} was revoked, and is good again`);
  return faults;
}
