/**
 * The host directory. Every actors process learns all hosts from the owners of their partitions,
 * and every heartbeat from the host itself or from its owner. Placement and every displayed status
 * read it; only messages change it.
 */
import { isDeepStrictEqual } from 'node:util';
import type { Clock } from '../../lib/time/clock.ts';
import type { Capacity, DirectoryEntry, HostFault } from '../../schemas/api/host.ts';
import type { HostKey, NetworkName, Region } from '../../schemas/ids.ts';
import type { DirectoryAt, DirectoryMessage } from '../../schemas/wire/directory.ts';
import { engineAway, type Beat, type HostRoom } from '../../schemas/wire/host.ts';
import type { MeshEnd } from '../../schemas/wire/mesh.ts';
import type { NetworkServer } from '../../schemas/wire/network-server.ts';
import { defaultHostCeiling, limits } from '../../schemas/limits.ts';
import { withoutControls } from '../../schemas/visible.ts';
import { partitionOf, type Sender } from '../../schemas/wire/subjects.ts';
import { capacityWithin, ceilingOf, isOverCeiling } from '../domain/host/ceiling.ts';
import { highestSession, isEnrolled } from '../domain/host/sender.ts';
import type { FleetHost, FleetView, HostCondition } from '../domain/turn.ts';
import { isBehind } from './directory.ts';
import { ListeningClock } from './listening-clock.ts';
import { Placements } from './placements.ts';

interface HeardBeat {
  readonly used: Capacity;
  readonly engine: string;
  readonly orphansHeld: number;
  readonly volumesLeft: number;
  readonly faults: readonly HostFault[];
  readonly room: HostRoom;
  readonly mesh: MeshEnd | undefined;
  /** Ports that were placed there when it was heard. */
  readonly portsPlaced: number;
  readonly session: number;
  /** The time at which this session's first heartbeat arrived. */
  readonly sinceMs: number;
  readonly wallMs: number;
}

/**
 * The version of one partition's part of the directory; an older message never replaces a newer.
 */
interface Version {
  readonly epoch: number;
  readonly revision: number;
  /** All changes of the epoch up to this one are known; `undefined` if one was missed. */
  readonly changes: number | undefined;
}

function isOlder(message: DirectoryMessage, known: Version): boolean {
  if (message.epoch !== known.epoch) return message.epoch < known.epoch;
  if (message.revision !== known.revision) return message.revision < known.revision;
  return known.changes !== undefined && message.changes < known.changes;
}

/** The changes that are known after the message; `undefined` if not all are. */
function changesAfter(known: Version | undefined, { epoch, changes, full }: DirectoryMessage): number | undefined {
  if (full) return changes;
  if (known?.epoch !== epoch || known.changes === undefined) return undefined;
  return changes <= known.changes + 1 ? changes : undefined;
}

const clonedState: HostFault = {
  kind: 'cloned_state',
  message:
    'two agents have the identity of this host: STATE_DIR was copied to another machine. The one that started later works; ' +
    'enrol the other under a key of its own',
};

export interface FleetOptions {
  readonly clock: Clock;
  readonly partitions: number;
  readonly hostUnknownMs: number;
  readonly ceiling?: Capacity;
  /** Containers that leave a drained host at once, unless its operator sets another number. */
  readonly drainAtOnce?: number;
  /** The number of actors processes. */
  readonly processes?: () => number;
  /** Called when a host that was heard before reports another end of the mesh. */
  readonly onMeshEnd?: (host: HostKey) => void;
  /** Called when another host, or none, serves the network, or when it serves it differently. */
  readonly onServer?: (network: NetworkName, hosts: ReadonlySet<HostKey>) => void;
}

export class Fleet implements FleetView {
  /** The clock by which the silence of hosts is counted. */
  readonly listening: ListeningClock;
  readonly placements = new Placements();
  readonly #clock: Clock;
  readonly #partitions: number;
  readonly #unknownMs: number;
  readonly #drainAtOnce: number;
  readonly #processes: () => number;
  readonly #onMeshEnd: (host: HostKey) => void;
  readonly #onServer: NonNullable<FleetOptions['onServer']>;
  readonly ceiling: Capacity;
  readonly #entries = new Map<HostKey, DirectoryEntry>();
  /** Capacities, capped by the ceilings. */
  readonly #capacities = new Map<HostKey, Capacity>();
  readonly #byRegion = new Map<Region, HostKey[]>();
  readonly #versions = new Map<number, Version>();
  readonly #beats = new Map<HostKey, HeardBeat>();
  /** The time at which a heartbeat of an older session last arrived. */
  readonly #rivalMs = new Map<HostKey, number>();
  /**
   * On the listening clock: when the host was heard last, and when this process came to know of it.
   */
  readonly #heardAtMs = new Map<HostKey, number>();
  readonly #knownSinceMs = new Map<HostKey, number>();
  readonly #unreadable = new Set<HostKey>();
  readonly #servers = new Map<NetworkName, NetworkServer>();

  constructor(options: FleetOptions) {
    this.#drainAtOnce = options.drainAtOnce ?? limits.drainAtOnce;
    this.#processes = options.processes ?? (() => 1);
    this.#onMeshEnd = options.onMeshEnd ?? (() => undefined);
    this.#onServer = options.onServer ?? (() => undefined);
    this.ceiling = options.ceiling ?? defaultHostCeiling;
    this.#clock = options.clock;
    this.#partitions = options.partitions;
    this.#unknownMs = options.hostUnknownMs;
    this.listening = new ListeningClock(options.clock);
  }

  // FleetView

  host(key: HostKey): FleetHost | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    const heard = this.#beats.get(key);
    return {
      key,
      region: entry.region,
      condition: this.condition(key),
      schedulable: !entry.cordoned && !entry.draining,
      draining: entry.draining,
      hasEngine: heard?.engine !== engineAway,
      isSound: this.#isSound(entry, heard),
      capacity: this.#capacities.get(key) ?? null,
      used: this.placements.used(key, heard?.used),
      freePorts: this.#freePorts(key, heard),
      freeDiskBytes: heard?.room.disk_bytes ?? null,
    };
  }

  /** The free ports that the host reported last, less those that were placed there since. */
  #freePorts(key: HostKey, heard: HeardBeat | undefined): number | null {
    if (heard?.room.ports === undefined) return null;
    return Math.max(0, heard.room.ports - Math.max(0, this.placements.ports(key) - heard.portsPlaced));
  }

  /** Processes share the limit of a drain; each may move one at least. */
  mayLeave(key: HostKey): boolean {
    const atOnce = this.#entries.get(key)?.drainAtOnce ?? this.#drainAtOnce;
    return this.placements.leaving(key) < Math.max(1, Math.floor(atOnce / Math.max(1, this.#processes())));
  }

  #isSound(entry: DirectoryEntry, heard: HeardBeat | undefined): boolean {
    if (heard !== undefined && heard.faults.length > 0) return false;
    return !isOverCeiling(entry, this.ceiling, heard?.used);
  }

  isEnrolled(sender: Sender): boolean {
    return isEnrolled(this.#entries.get(sender.host), sender);
  }

  enrolledKey(key: HostKey): string | null | undefined {
    return this.#entries.get(key)?.publicKey;
  }

  condition(key: HostKey): HostCondition {
    const entry = this.#entries.get(key);
    if (entry === undefined) {
      const isKnown = this.isSynced(key) && !this.isUnreadable(key);
      return isKnown ? 'removed' : 'unheard';
    }
    if (entry.fenced === true) return 'fenced';
    if (entry.lost) return 'lost';
    if (this.silentMs(key) >= this.#unknownMs) return 'silent';
    return this.#heardAtMs.has(key) ? 'up' : 'unheard';
  }

  /** The newest known session of the host; `undefined` if the host is unknown. */
  session(key: HostKey): number | undefined {
    const entry = this.#entries.get(key);
    return entry === undefined ? undefined : Math.max(entry.session, this.#beats.get(key)?.session ?? 0);
  }

  /** `true` if the owner of the host's partition has sent this process its hosts. */
  isSynced(key: HostKey): boolean {
    return this.#versions.has(partitionOf(key, this.#partitions));
  }

  /** `true` if its record is damaged, so that the enrolled key is unknown. */
  isUnreadable(key: HostKey): boolean {
    return this.#unreadable.has(key);
  }

  /**
   * The host's end of the mesh, as last reported; `null` if it has none, `undefined` if not heard.
   */
  meshEnd(key: HostKey): MeshEnd | null | undefined {
    const heard = this.#beats.get(key);
    return heard === undefined ? undefined : (heard.mesh ?? null);
  }

  server(network: NetworkName): NetworkServer | undefined {
    return this.#servers.get(network);
  }

  servers(): Iterable<NetworkServer> {
    return this.#servers.values();
  }

  /** `true` if the owner of the network has reported its server. */
  hasHeardOf(network: NetworkName): boolean {
    return this.#versions.has(partitionOf(network, this.#partitions));
  }

  /** `true` if the owners of all partitions have reported their hosts and servers. */
  get hasHeardAll(): boolean {
    return this.#versions.size >= this.#partitions;
  }

  lastHeardMs(key: HostKey): number | null {
    return this.#beats.get(key)?.wallMs ?? null;
  }

  beat(key: HostKey) {
    const beat = this.#beats.get(key);
    if (beat === undefined) return null;
    return this.#hasRival(key, beat) ? { ...beat, faults: [...beat.faults, clonedState] } : beat;
  }

  /**
   * `true` if an agent that started later has the host's session, and sends heartbeats. Then the
   * asker, which had an older session, is a second agent with the same identity.
   */
  isSuperseded(key: HostKey, held: number, newest: number): boolean {
    const beat = this.#beats.get(key);
    return held < newest && beat?.session === newest && this.silentMs(key) < this.#unknownMs;
  }

  /**
   * A replaced agent is silent soon. One that keeps sending heartbeats beside its successor runs on
   * another machine.
   */
  #hasRival(key: HostKey, { sinceMs }: HeardBeat): boolean {
    const rivalMs = this.#rivalMs.get(key);
    if (rivalMs === undefined) return false;
    return rivalMs - sinceMs >= this.#unknownMs && this.#clock.monotonicMs() - rivalMs < this.#unknownMs;
  }

  hostsIn(region: Region): readonly HostKey[] {
    return this.#byRegion.get(region) ?? [];
  }

  /**
   * Milliseconds for which the host has been silent, counting only time in which this process could
   * hear it and knew of it.
   */
  silentMs(key: HostKey): number {
    const since = this.#heardAtMs.get(key) ?? this.#knownSinceMs.get(key);
    // A connection that is found to be lost moves the listening clock back, perhaps to before the
    // last heartbeat.
    return since === undefined ? 0 : Math.max(0, this.listening.nowMs() - since);
  }

  /**
   * Returns a function: `true` if a third of the other hosts of a host's region are silent too.
   * Then this process is probably cut off, and no host is lost. Each call of `regionSilence` counts
   * a region once, so one call serves a whole sweep.
   */
  regionSilence(): (key: HostKey) => boolean {
    const counts = new Map<Region, { started: number; silent: number }>();
    const countsOf = (region: Region) => {
      let count = counts.get(region);
      if (count === undefined) counts.set(region, (count = this.#countSilent(region)));
      return count;
    };
    return (key) => {
      const entry = this.#entries.get(key);
      if (entry === undefined) return false;
      const { started, silent } = countsOf(entry.region);
      const isCounted = entry.capacity !== null;
      const others = started - (isCounted ? 1 : 0);
      const silentOthers = silent - (isCounted && this.condition(key) === 'silent' ? 1 : 0);
      return others > 0 && silentOthers * 3 >= others;
    };
  }

  /** Hosts that never said hello do not count: they never sent anything. */
  #countSilent(region: Region): { started: number; silent: number } {
    const started = this.hostsIn(region).filter((key) => (this.#entries.get(key)?.capacity ?? null) !== null);
    return { started: started.length, silent: started.filter((key) => this.condition(key) === 'silent').length };
  }

  *hosts(): Iterable<{ readonly key: HostKey; readonly condition: HostCondition }> {
    for (const key of this.#entries.keys()) yield { key, condition: this.condition(key) };
  }

  /** The versions of the directories that this process has whole, by partition. */
  held(): Record<string, [epoch: number, changes: number]> {
    const held: Record<string, [number, number]> = {};
    for (const [partition, { epoch, changes }] of this.#versions) {
      if (changes !== undefined) held[String(partition)] = [epoch, changes];
    }
    return held;
  }

  /** `true` if this process knows the hosts of the partition as of this version, or a later one. */
  isUpTo(partition: number, at: DirectoryAt): boolean {
    const known = this.#versions.get(partition);
    // The version of a former owner.
    if (known !== undefined && known.epoch > at[0]) return true;
    return known?.changes !== undefined && !isBehind([known.epoch, known.changes], at);
  }

  // Messages

  /** Called after a hello, which shows life before the first heartbeat of the session. */
  greeted(key: HostKey): void {
    if (this.#entries.has(key)) this.#heardAtMs.set(key, this.listening.nowMs());
  }

  /**
   * Adds the milliseconds for which each host has been silent, for processes that have not listened
   * as long as this one.
   */
  dated(message: DirectoryMessage): DirectoryMessage {
    const entries = message.entries.map((entry) =>
      this.#heardAtMs.has(entry.key) ? { ...entry, silentMs: Math.round(this.silentMs(entry.key)) } : entry,
    );
    return { ...message, entries };
  }

  /** @returns `true` if it counts: the host is known, and no newer session of it is */
  takeHeartbeat(key: HostKey, beat: Beat): boolean {
    const before = this.#beats.get(key);
    const entry = this.#entries.get(key);
    if (entry === undefined) return false;
    const nowMs = this.#clock.monotonicMs();
    if (beat.session > highestSession(entry.session, this.#clock.nowMs())) {
      // It shows life, and its other content does not count.
      this.#heardAtMs.set(key, this.listening.nowMs());
      return false;
    }
    if (before !== undefined && before.session > beat.session) {
      this.#rivalMs.set(key, nowMs);
      return false;
    }
    this.#beats.set(key, {
      used: beat.used,
      engine: withoutControls(beat.engine),
      orphansHeld: beat.orphans_held,
      volumesLeft: beat.volumes_left,
      faults: beat.faults.map(({ kind, message }) => ({ kind, message: withoutControls(message) })),
      room: beat.room,
      mesh: beat.mesh,
      portsPlaced: this.placements.ports(key),
      session: beat.session,
      sinceMs: before?.session === beat.session ? before.sinceMs : nowMs,
      wallMs: this.#clock.nowMs(),
    });
    this.#heardAtMs.set(key, this.listening.nowMs());
    if (before !== undefined && !isDeepStrictEqual(before.mesh, beat.mesh)) this.#onMeshEnd(key);
    return true;
  }

  /** Called after a heartbeat, heard by another process, that repeats the last one. */
  heardAgain(key: HostKey): void {
    if (!this.#entries.has(key)) return;
    const beat = this.#beats.get(key);
    if (beat !== undefined)
      this.#beats.set(key, { ...beat, portsPlaced: this.placements.ports(key), wallMs: this.#clock.nowMs() });
    this.#heardAtMs.set(key, this.listening.nowMs());
  }

  /**
   * @returns `false` if the message is older than the known version, or changes one host while the
   * other hosts of its partition are unknown: these would seem to have been removed.
   */
  learn(message: DirectoryMessage): boolean {
    const known = this.#versions.get(message.partition);
    if (known === undefined ? !message.full : isOlder(message, known)) return false;
    const { epoch, revision } = message;
    this.#versions.set(message.partition, { epoch, revision, changes: changesAfter(known, message) });
    if (message.full) {
      const named = new Set(message.entries.map(({ key }) => key));
      const isOfPartition = (key: HostKey): boolean => partitionOf(key, this.#partitions) === message.partition;
      this.#forget([...this.#entries.keys()].filter((key) => !named.has(key) && isOfPartition(key)));
      for (const key of this.#unreadable) {
        if (partitionOf(key, this.#partitions) === message.partition) this.#unreadable.delete(key);
      }
      for (const key of message.unreadable) this.#unreadable.add(key);
      if (message.servers !== undefined) this.#learnServers(message.partition, message.servers);
    }
    this.#forget(message.removed);
    for (const entry of message.entries) this.#put(entry);
    return true;
  }

  #learnServers(partition: number, servers: readonly NetworkServer[]): void {
    const after = new Map(servers.map((server) => [server.network, server]));
    const before = [...this.#servers.keys()].filter((network) => partitionOf(network, this.#partitions) === partition);
    for (const network of new Set([...before, ...after.keys()])) {
      const [was, is] = [this.#servers.get(network), after.get(network)];
      if (isDeepStrictEqual(was, is)) continue;
      if (is === undefined) this.#servers.delete(network);
      else this.#servers.set(network, is);
      this.#onServer(network, new Set([was, is].flatMap((server) => (server === undefined ? [] : [server.host]))));
    }
  }

  #put(entry: DirectoryEntry): void {
    const before = this.#entries.get(entry.key);
    this.#unreadable.delete(entry.key);
    this.#entries.set(entry.key, entry);
    if (entry.capacity === null) {
      this.#capacities.delete(entry.key);
    } else {
      this.#capacities.set(entry.key, capacityWithin(entry.capacity, ceilingOf(entry, this.ceiling)));
    }
    if (!this.#knownSinceMs.has(entry.key)) this.#knownSinceMs.set(entry.key, this.listening.nowMs());
    if (entry.silentMs !== undefined && !this.#heardAtMs.has(entry.key)) {
      this.#heardAtMs.set(entry.key, this.listening.nowMs() - entry.silentMs);
    }
    if (before?.region === entry.region) return;
    if (before !== undefined) this.#leaveRegion(before.region, new Set([before.key]));
    const keys = this.#byRegion.get(entry.region);
    if (keys === undefined) this.#byRegion.set(entry.region, [entry.key]);
    else keys.push(entry.key);
  }

  /** Takes all keys at once, to go through a region of ten thousand hosts only once. */
  #forget(keys: readonly HostKey[]): void {
    const gone = new Map<Region, Set<HostKey>>();
    for (const key of keys) {
      this.#unreadable.delete(key);
      const entry = this.#entries.get(key);
      if (entry === undefined) continue;
      const ofRegion = gone.get(entry.region);
      if (ofRegion === undefined) gone.set(entry.region, new Set([key]));
      else ofRegion.add(key);
      this.#entries.delete(key);
      this.#capacities.delete(key);
      this.#beats.delete(key);
      this.#rivalMs.delete(key);
      this.#heardAtMs.delete(key);
      this.#knownSinceMs.delete(key);
    }
    for (const [region, ofRegion] of gone) this.#leaveRegion(region, ofRegion);
  }

  #leaveRegion(region: Region, keys: ReadonlySet<HostKey>): void {
    this.#byRegion.set(
      region,
      this.hostsIn(region).filter((key) => !keys.has(key)),
    );
  }
}
