/**
 * The host directory: every actors process keeps a copy of every host, told by the owners of the hosts' partitions, and
 * hears every heartbeat itself. Read by placement and by every status that is shown; written by messages only.
 */
import type { Clock } from '../lib/clock.ts';
import type { Capacity, DirectoryEntry, HostFault } from '../schemas/host.ts';
import type { HostKey, Region } from '../schemas/ids.ts';
import type { Beat, DirectoryMessage } from '../schemas/messages.ts';
import { partitionOf } from '../schemas/subjects.ts';
import type { PlacementLedger } from './state.ts';
import type { FleetHost, FleetView, HostStanding } from './turn.ts';

interface HeardBeat {
  readonly used: Capacity;
  readonly engine: string;
  readonly orphansHeld: number;
  readonly faults: readonly HostFault[];
  readonly session: number;
  /** When this session was heard first. */
  readonly sinceMs: number;
  readonly wallMs: number;
  readonly monotonicMs: number;
}

interface Placed {
  cpuMillis: number;
  memBytes: number;
  containers: number;
}

/** Where a partition's part of the directory stands; an older message never replaces a newer one. */
interface Version {
  readonly epoch: number;
  readonly revision: number;
}

const isOlder = (version: Version, than: Version): boolean =>
  version.epoch !== than.epoch ? version.epoch < than.epoch : version.revision < than.revision;

const clonedState: HostFault = {
  kind: 'cloned_state',
  message:
    'two agents have the identity of this host: STATE_DIR was copied to another machine. The one that started later works; ' +
    'enrol the other under a key of its own',
};

export class Fleet implements FleetView, PlacementLedger {
  readonly #clock: Clock;
  readonly #partitions: number;
  readonly #unknownMs: number;
  readonly #entries = new Map<HostKey, DirectoryEntry>();
  readonly #byRegion = new Map<Region, HostKey[]>();
  readonly #versions = new Map<number, Version>();
  readonly #beats = new Map<HostKey, HeardBeat>();
  /** When a heartbeat of an older session was last heard. */
  readonly #rivalMs = new Map<HostKey, number>();
  readonly #knownSinceMs = new Map<HostKey, number>();
  readonly #unreadable = new Set<HostKey>();
  #listeningSinceMs: number;
  readonly #placed = new Map<HostKey, Placed>();

  constructor(options: { clock: Clock; partitions: number; hostUnknownMs: number }) {
    this.#clock = options.clock;
    this.#partitions = options.partitions;
    this.#unknownMs = options.hostUnknownMs;
    this.#listeningSinceMs = options.clock.monotonicMs();
  }

  // FleetView

  host(key: HostKey): FleetHost | undefined {
    const entry = this.#entries.get(key);
    if (entry === undefined) return undefined;
    const placed = this.#placed.get(key);
    const beat = this.#beats.get(key)?.used;
    return {
      key,
      region: entry.region,
      standing: this.standing(key),
      schedulable: !entry.cordoned && !entry.draining,
      draining: entry.draining,
      capacity: entry.capacity,
      // Other processes place there too: their part shows in the host's own count.
      used: {
        cpu_millis: Math.max(placed?.cpuMillis ?? 0, beat?.cpu_millis ?? 0),
        mem_bytes: Math.max(placed?.memBytes ?? 0, beat?.mem_bytes ?? 0),
        containers: Math.max(placed?.containers ?? 0, beat?.containers ?? 0),
      },
    };
  }

  standing(key: HostKey): HostStanding {
    const entry = this.#entries.get(key);
    if (entry === undefined) {
      const isKnown = this.isTold(key) && !this.#unreadable.has(key);
      return isKnown ? 'removed' : 'unheard';
    }
    if (entry.lost) return 'lost';
    return this.silentMs(key) >= this.#unknownMs ? 'silent' : 'up';
  }

  /** The newest session that is known of the host; undefined where nothing is known of it. */
  session(key: HostKey): number | undefined {
    const entry = this.#entries.get(key);
    return entry === undefined ? undefined : Math.max(entry.session ?? 0, this.#beats.get(key)?.session ?? 0);
  }

  /** Has the owner of the host's partition told this process of its hosts? */
  isTold(key: HostKey): boolean {
    return this.#versions.has(partitionOf(key, this.#partitions));
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
   * Does an agent that started later hold this host's session, and is it heard? Then the one that asks, which held an
   * older session, is a second agent of the same identity.
   */
  isSuperseded(key: HostKey, held: number, newest: number): boolean {
    const beat = this.#beats.get(key);
    return held < newest && beat?.session === newest && this.silentMs(key) < this.#unknownMs;
  }

  /** An agent that was replaced is silent soon; one that goes on beating beside its successor runs elsewhere. */
  #hasRival(key: HostKey, { sinceMs }: HeardBeat): boolean {
    const rivalMs = this.#rivalMs.get(key);
    if (rivalMs === undefined) return false;
    return rivalMs - sinceMs >= this.#unknownMs && this.#clock.monotonicMs() - rivalMs < this.#unknownMs;
  }

  hostsIn(region: Region): readonly HostKey[] {
    return this.#byRegion.get(region) ?? [];
  }

  /** Counted from no earlier than when this process came to know of the host, or could hear again at all. */
  silentMs(key: HostKey): number {
    const since = this.#beats.get(key)?.monotonicMs ?? this.#knownSinceMs.get(key);
    return since === undefined ? 0 : this.#clock.monotonicMs() - Math.max(since, this.#listeningSinceMs);
  }

  /**
   * Is a third of the other hosts of its region silent too? Then it is more likely we who are cut off, and nobody is lost.
   */
  regionIsSilent(key: HostKey): boolean {
    const entry = this.#entries.get(key);
    if (entry === undefined) return false;
    // One that never said hello was never to be heard.
    const hasStarted = (other: HostKey): boolean => (this.#entries.get(other)?.capacity ?? null) !== null;
    const others = this.hostsIn(entry.region).filter((other) => other !== key && hasStarted(other));
    const silent = others.filter((other) => this.standing(other) === 'silent');
    return others.length > 0 && silent.length * 3 >= others.length;
  }

  *hosts(): Iterable<{ readonly key: HostKey; readonly standing: HostStanding }> {
    for (const key of this.#entries.keys()) yield { key, standing: this.standing(key) };
  }

  // What is heard

  /** This process was deaf until now: what it did not hear since says nothing of any host. */
  listen(): void {
    this.#listeningSinceMs = this.#clock.monotonicMs();
  }

  hear(key: HostKey, beat: Beat): void {
    const before = this.#beats.get(key);
    if (!this.#entries.has(key)) return;
    const nowMs = this.#clock.monotonicMs();
    if (before !== undefined && before.session > beat.session) {
      this.#rivalMs.set(key, nowMs);
      return;
    }
    this.#beats.set(key, {
      used: beat.used,
      engine: beat.engine,
      orphansHeld: beat.orphans_held,
      faults: beat.faults ?? [],
      session: beat.session,
      sinceMs: before?.session === beat.session ? before.sinceMs : nowMs,
      wallMs: this.#clock.nowMs(),
      monotonicMs: nowMs,
    });
  }

  /**
   * @returns false where the message is older than what is known, or tells of one host while the others of its partition
   * are not known: they would seem to have been removed.
   */
  learn(message: DirectoryMessage): boolean {
    const known = this.#versions.get(message.partition);
    if (known === undefined ? !message.full : isOlder(message, known)) return false;
    this.#versions.set(message.partition, { epoch: message.epoch, revision: message.revision });
    if (message.full) {
      const named = new Set(message.entries.map(({ key }) => key));
      for (const key of this.#entries.keys()) {
        if (partitionOf(key, this.#partitions) === message.partition && !named.has(key)) this.#forget(key);
      }
      for (const key of this.#unreadable) {
        if (partitionOf(key, this.#partitions) === message.partition) this.#unreadable.delete(key);
      }
      for (const key of message.unreadable) this.#unreadable.add(key);
    }
    for (const key of message.removed) this.#forget(key);
    for (const entry of message.entries) this.#put(entry);
    return true;
  }

  // PlacementLedger

  add(host: HostKey, cpuMillis: number, memBytes: number): void {
    const placed = this.#placed.get(host);
    if (placed === undefined) {
      this.#placed.set(host, { cpuMillis, memBytes, containers: 1 });
      return;
    }
    placed.cpuMillis += cpuMillis;
    placed.memBytes += memBytes;
    placed.containers++;
  }

  subtract(host: HostKey, cpuMillis: number, memBytes: number): void {
    const placed = this.#placed.get(host);
    if (placed === undefined) return;
    placed.cpuMillis -= cpuMillis;
    placed.memBytes -= memBytes;
    placed.containers--;
    if (placed.containers === 0) this.#placed.delete(host);
  }

  #put(entry: DirectoryEntry): void {
    const before = this.#entries.get(entry.key);
    this.#unreadable.delete(entry.key);
    this.#entries.set(entry.key, entry);
    if (!this.#knownSinceMs.has(entry.key)) this.#knownSinceMs.set(entry.key, this.#clock.monotonicMs());
    if (before?.region === entry.region) return;
    if (before !== undefined) this.#leaveRegion(before);
    this.#byRegion.set(entry.region, [...this.hostsIn(entry.region), entry.key]);
  }

  #forget(key: HostKey): void {
    this.#unreadable.delete(key);
    const entry = this.#entries.get(key);
    if (entry === undefined) return;
    this.#leaveRegion(entry);
    this.#entries.delete(key);
    this.#beats.delete(key);
    this.#rivalMs.delete(key);
    this.#knownSinceMs.delete(key);
  }

  #leaveRegion({ key, region }: DirectoryEntry): void {
    this.#byRegion.set(
      region,
      this.hostsIn(region).filter((other) => other !== key),
    );
  }
}
