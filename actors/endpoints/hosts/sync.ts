/**
 * Answers a sync: a host asks for its desired state, and which of its strangers were given away.
 */
import { inParts, partText } from '../../../lib/rpc/parts.ts';
import type { ContainerRecord } from '../../../schemas/api/container.ts';
import {
  isTenantId,
  type ContainerId,
  type HostKey,
  type NetworkName,
  type PeerId,
  type TenantId,
} from '../../../schemas/ids.ts';
import { announcedEpoch, incarnationOf } from '../../../schemas/records/cluster.ts';
import type { Stranger, SyncAnswer, SyncAsk } from '../../../schemas/wire/host.ts';
import type { Member } from '../../../schemas/wire/members.ts';
import { digestOfEnds, type EndSaid } from '../../../schemas/wire/mesh.ts';
import type { ServerSaid } from '../../../schemas/wire/network-server.ts';
import { partitionOf, type Sender } from '../../../schemas/wire/subjects.ts';
import { protocolFields } from '../../../schemas/wire/version.ts';
import { limits } from '../../../schemas/limits.ts';
import { desiredDigest, desiredOf, protocolOfContainer, type NewParts } from '../../domain/desired.ts';
import { hostDirtyKey, tenantDirtyKey } from '../../domain/domain.ts';
import { isEnrolled } from '../../domain/host/sender.ts';
import type { Fleet } from '../fleet.ts';
import { hostsOf, memberOf, membersOf, peerMemberOf, tenantsOf } from '../../domain/members.ts';
import { goneFrom, keysOf } from '../../domain/host/strangers.ts';
import type { PartitionView } from '../../domain/state.ts';
import type { TenantView } from '../../domain/tenant/state.ts';
import type { Partition } from '../../partition.ts';
import { countRefused, type HostServerOptions } from './server.ts';

export interface SyncOptions extends Pick<
  HostServerOptions,
  'cluster' | 'owned' | 'fleet' | 'slices' | 'signer' | 'onRefused' | 'log'
> {
  /** In the place of those that this release has. */
  readonly newParts?: NewParts;
}

/**
 * Every owner answers for its own partitions, once everything in the answer is committed (invariant
 * A3).
 */
export function answerSync(options: SyncOptions, sender: Sender, ask: SyncAsk, send: (text: string) => void): void {
  const { cluster, slices, log } = options;
  const { host } = sender;
  const wanted = ask.partitions === undefined ? undefined : new Set(ask.partitions);
  const begin = (answers: Generator<void, void, void>): void => {
    // If the queue is full, the host gets no answer for these partitions and asks again.
    slices.begin('sync', answers, (error) => log.error('sync_failed', { host, error }), host);
  };
  const same: Synced['head'][] = [];
  /** Only what can be answered at once: nothing waits for another partition to commit. */
  let isJoining = true;
  for (const partition of options.owned()) {
    if (wanted !== undefined && !wanted.has(partition.number)) continue;
    const strangers = (ask.strangers ?? []).filter(
      ({ tenant }) => partitionOf(tenant, cluster.partitions) === partition.number,
    );
    partition.project({
      by: `host ${host}`,
      // Its agent asks again then.
      untilMs: partition.deadlineOf({ budgetMs: limits.syncTimeoutMs }),
      dirtyKeys: (state) => [hostDirtyKey(host), ...keysOf(strangers), ...memberKeys(state, options.fleet, host, ask)],
      look: (state) => lookFor(options, partition, state, { sender, ask, strangers }),
      bytesOf,
      then: (synced) => {
        if (synced === undefined) {
          countRefused(options, 'sync', sender);
          return;
        }
        if (isJoining && saysOnlySame(synced)) same.push(synced.head);
        else begin(syncAnswers(synced, host, send));
      },
    });
  }
  isJoining = false;
  if (same.length > 0) begin(joinedAnswers(same, send));
}

/**
 * A partition's answer to a sync: the answer without its lists, and the records that the lists are
 * made of.
 */
interface Synced extends Lists {
  readonly head: Omit<SyncAnswer, 'part' | 'parts' | 'gone' | 'containers' | 'removed' | 'hold' | keyof MemberNews>;
  readonly gone: NonNullable<SyncAnswer['gone']>;
}

/** `removed`: since the version in the answer. */
interface Lists {
  readonly placed: readonly ContainerRecord[];
  readonly removed: readonly ContainerId[];
  readonly hold: readonly ContainerId[];
  /** `undefined` if the agent has not asked for members. */
  readonly members?: MemberNews | undefined;
}

const noLists: Lists = { placed: [], removed: [], hold: [] };

interface MemberNews {
  readonly tenants: NonNullable<SyncAnswer['tenants']>;
  readonly members: Member[];
  readonly members_gone: NonNullable<SyncAnswer['members_gone']>;
  readonly mesh: EndSaid[];
  readonly servers: ServerSaid[];
  readonly tenants_gone: TenantId[];
}

/** About what one item of the lists takes in memory: an id or a record that is there, a member. */
const itemBytes = 16;
const memberBytes = 300;

function bytesOf(synced: Synced | undefined): number {
  if (synced === undefined) return 0;
  const { placed, removed, hold, gone, members } = synced;
  const items = placed.length + removed.length + hold.length + gone.length;
  const news = members === undefined ? 0 : members.members.length + members.members_gone.length + members.mesh.length;
  return itemBytes * items + memberBytes * news;
}

type Common = Omit<Synced['head'], 'same' | 'since' | 'digest' | 'fenced' | 'orphan_word' | 'signer'>;

/** `undefined` if the sender gets no answer. */
function lookFor(
  { cluster, fleet, signer, newParts }: SyncOptions,
  partition: Partition,
  state: PartitionView,
  {
    sender,
    ask,
    strangers,
  }: { readonly sender: Sender; readonly ask: SyncAsk; readonly strangers: readonly Stranger[] },
): Synced | undefined {
  const { number } = partition;
  const { host } = sender;
  const incarnation = incarnationOf(cluster);
  const version = { epoch: announcedEpoch(cluster, number, partition.epoch), revision: state.revisionOf(host) };
  const common: Common = {
    v: 1,
    ...protocolFields,
    cluster: cluster.id,
    partitions: cluster.partitions,
    partition: number,
    incarnation,
    ...version,
    ...(cluster.tenantIpv4 === undefined ? {} : { tenant_ipv4: cluster.tenantIpv4 }),
  };
  const isHome = number === partitionOf(host, cluster.partitions);
  const home = isHome ? state.host(host) : undefined;
  const held = ask.held[String(number)];
  if (isHome ? [...state.damagedHosts()].includes(host) : fleet.isUnreadable(host)) {
    return held === undefined ? undefined : keepsWhatItRuns(common, held);
  }
  if ((isHome && home === undefined && wasRemoved(state, sender)) || fleet.condition(host) === 'fenced') {
    // An operator removed this host, so it learns nothing about containers any more.
    const head = { ...common, same: true, fenced: true as const, orphan_word: null };
    return { head, gone: [], ...noLists };
  }
  if (!(home === undefined ? fleet.isEnrolled(sender) : isEnrolled(home, sender))) return undefined;
  const { lists, ...news } = newsFor(state, fleet, ask, { ...common, host, newParts });
  return {
    head: {
      ...common,
      ...news,
      orphan_word: home?.orphanWord ?? null,
      ...(home === undefined || signer === undefined ? {} : { signer }),
    },
    gone: goneFrom(state, host, strangers, incarnation, fleet.host(host)?.schedulable).map(
      ({ tenant, id, placement }) => ({
        id,
        placement,
        ...(state.tenant(tenant).containers.has(id) ? {} : { deleted: true as const }),
      }),
    ),
    ...lists,
  };
}

type News = Pick<SyncAnswer, 'same' | 'since' | 'digest'> & { readonly lists: Lists };

/** The news for an agent: none, the changes since its version, or the whole set. */
function newsFor(
  state: PartitionView,
  fleet: Fleet,
  ask: SyncAsk,
  common: Common & { readonly host: HostKey; readonly newParts: NewParts | undefined },
): News {
  const { host, partition, epoch, revision, incarnation = 0, newParts } = common;
  const { held: versions, digests = {}, protocol = 0 } = ask;
  const held = versions[String(partition)];
  const isOfOurs = held !== undefined && held[0] === epoch;
  const isCurrent = isOfOurs && held[1] === revision;
  const wanted = [...state.wantedOn(host)];
  const isForThisAgent = (record: ContainerRecord): boolean => protocol >= protocolOfContainer(record, newParts);
  const placed = new Map(wanted.filter(isForThisAgent).map((record) => [record.id, record]));
  // Part of the same version as the containers.
  const unknown = wanted.filter((record) => !isForThisAgent(record)).map(({ id }) => id);
  const hold = [...state.damagedContainers(), ...unknown];
  const whole = (): Lists => ({ placed: [...placed.values()], removed: [], hold, members });
  const digest = desiredDigest(incarnation, host, placed.values(), hold);
  const theirs = digests[String(partition)];
  // The set that an earlier owner gave may still be the set.
  const isSame = theirs === undefined ? isCurrent : held !== undefined && theirs === digest;
  const members = membersFor(state, fleet, ask, new Set(tenantsOn(state, fleet, host, wanted)), common);
  const hasMemberNews = members !== undefined && members.tenants.length + members.tenants_gone.length > 0;
  if (isSame && !hasMemberNews) return { same: true, lists: noLists };
  // Of an earlier owner, perhaps: then the set comes whole, and is the same.
  if (isSame && isOfOurs) return { same: false, since: held, digest, lists: { ...noLists, hold, members } };
  const changed = isOfOurs && !isCurrent && theirs !== undefined ? state.changesSince(host, held[1]) : undefined;
  if (held === undefined || changed === undefined) return { same: false, digest, lists: whole() };
  const lists = {
    placed: [...changed].flatMap((id) => placed.get(id) ?? []),
    removed: [...changed].filter((id) => !placed.has(id)),
    hold,
    members,
  };
  return { same: false, since: held, digest, lists };
}

/** The keys that must be committed before members of the tenants on this host are shown. */
function memberKeys(state: PartitionView, fleet: Fleet, host: HostKey, { members }: SyncAsk): string[] {
  return members === undefined ? [] : Array.from(tenantsOn(state, fleet, host), tenantDirtyKey);
}

/** Tenants that have containers on the host, or peers in a VPN network that it serves. */
function* tenantsOn(
  state: PartitionView,
  fleet: Fleet,
  host: HostKey,
  wanted: Iterable<ContainerRecord> = state.wantedOn(host),
): Generator<TenantId, void, void> {
  yield* tenantsOf(wanted);
  for (const server of fleet.servers()) if (server.host === host) yield* state.vpn.tenantsIn(server.network);
}

/** Members of these tenants, except those that the agent has. */
function membersFor(
  state: PartitionView,
  fleet: Fleet,
  { members: held }: SyncAsk,
  tenants: ReadonlySet<TenantId>,
  { partition, partitions, epoch }: Pick<Common, 'partition' | 'partitions' | 'epoch'>,
): MemberNews | undefined {
  if (held === undefined) return undefined;
  const isLeft = (tenant: TenantId): boolean => !tenants.has(tenant) && partitionOf(tenant, partitions) === partition;
  // A process that has just started does not know yet what the host serves.
  const left = fleet.hasHeardAll ? Object.keys(held).filter(isTenantId).filter(isLeft) : [];
  const news: MemberNews = { tenants: [], members: [], members_gone: [], mesh: [], servers: [], tenants_gone: left };
  const ends = new Map<HostKey, EndSaid>();
  const servers = new Map<NetworkName, ServerSaid>();
  for (const tenant of tenants) {
    const summary = state.memberSummaryOf(tenant);
    const { revision, digest, networks } = summary;
    const theirEnds = endsOf(fleet, hostsOf(summary, fleet));
    const theirServers = serversOf(fleet, networks);
    const mesh = digestOfEnds(theirEnds, theirServers);
    const [theirEpoch, theirRevision = 0, theirDigest, theirMesh] = held[tenant] ?? [];
    if (theirDigest === digest && theirMesh === mesh) continue;
    if (theirMesh !== mesh) {
      for (const end of theirEnds) ends.set(end.host, end);
      for (const said of theirServers) servers.set(said.network, said);
    }
    const own = state.tenant(tenant);
    const changed = theirEpoch === epoch ? state.membersSince(tenant, theirRevision) : undefined;
    if (changed === undefined) {
      news.tenants.push({ tenant, revision, digest, mesh });
      news.members.push(...membersOf(own));
      continue;
    }
    news.tenants.push({ tenant, revision, since: theirRevision, digest, mesh });
    for (const id of changed) {
      const member = memberIn(own, id);
      if (member === undefined) news.members_gone.push({ tenant, id });
      else news.members.push(member);
    }
  }
  news.mesh.push(...ends.values());
  news.servers.push(...servers.values());
  return news;
}

function memberIn({ containers, peers }: TenantView, id: Member['id']): Member | undefined {
  const container = containers.get(id as ContainerId);
  if (container !== undefined) return memberOf(container);
  const peer = peers.records.get(id as PeerId);
  return peer && peerMemberOf(peer);
}

/** The servers of networks, as far as this process knows them: the host keeps the others. */
const serversOf = (fleet: Fleet, networks: Iterable<NetworkName>): ServerSaid[] =>
  Array.from(networks)
    .filter((name) => fleet.hasHeardOf(name))
    .map((network) => ({ network, server: fleet.server(network) ?? null }));

function endsOf(fleet: Fleet, hosts: Iterable<HostKey>): EndSaid[] {
  return Array.from(hosts).flatMap((host) => {
    const end = fleet.meshEnd(host);
    return end === undefined ? [] : [{ host, end }];
  });
}

/**
 * The answer for a host whose record is damaged. The enrolled key is unknown, so the answer repeats
 * only what the sender said itself. That is enough for an agent with STOP_ON_DISCONNECT to keep
 * its containers; they are not placed elsewhere, because the host does not count as lost.
 */
function keepsWhatItRuns(common: Common, [epoch, revision]: readonly [number, number]): Synced {
  const head = { ...common, epoch, revision, same: true, orphan_word: null };
  return { head, gone: [], ...noLists };
}

/**
 * `true` if an operator removed this host: then its key is among the revoked ones. If it is not, a
 * restore may have lost the host's record: the host gets no answer and keeps what it runs
 * (invariant A4).
 */
const wasRemoved = (state: PartitionView, { user }: Sender): boolean => state.revokedKeys().has(user);

const saysOnlySame = ({ head, gone }: Synced): boolean => head.same && head.fenced === undefined && gone.length === 0;

/** Sends one answer for many partitions, of which nothing has changed. */
function* joinedAnswers(heads: readonly Synced['head'][], send: (text: string) => void): Generator<void, void, void> {
  const perAnswer = limits.syncSame + 1;
  // The answer's other fields are those of its own partition.
  const isHome = ({ orphan_word: word }: Synced['head']): boolean => word !== null;
  const ordered = [...heads.filter(isHome), ...heads.filter((head) => !isHome(head))];
  for (let from = 0; from < ordered.length; from += perAnswer) {
    const [first, ...others] = ordered.slice(from, from + perAnswer);
    const also = others.map(({ partition, epoch, revision }) => [partition, epoch, revision]);
    send(JSON.stringify({ ...first, also, part: 0, parts: 1, containers: [], hold: [] }));
    yield;
  }
}

/** Sends the answer in parts that fit a message; each container is a step. */
function* syncAnswers(
  { head, gone, placed, removed, hold, members }: Synced,
  host: HostKey,
  send: (text: string) => void,
): Generator<void, void, void> {
  const changes = head.since === undefined ? {} : { removed };
  const parts = yield* inParts<string>({ containers: desiredOf(placed, host), hold, ...changes, ...members });
  for (const [part, lists] of parts.entries()) {
    const verdict = part === 0 && gone.length > 0 ? { gone } : {};
    send(partText({ ...head, ...verdict, part, parts: parts.length }, lists));
    yield;
  }
}
