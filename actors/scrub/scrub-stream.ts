/**
 * Compares the replicas of one stream from the first message to the last, page by page. A flipped
 * bit on a disk can silently remove messages from one replica, and that replica may become the
 * leader.
 */
import { jetstreamManager, type PeerInfo } from '@nats-io/jetstream';
import type { NatsConnection } from '@nats-io/transport-node';
import { sleep } from '../../lib/time/backoff.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { limits } from '../../schemas/limits.ts';
import {
  agree,
  compareReads,
  endOf,
  isConclusive,
  serversIn,
  type Finding,
  type ReplicaRead,
} from './scrub-compare.ts';
import { readReplica } from './scrub-read.ts';

/**
 * The pause after each read of a page: so many times as long as the read took, within these
 * bounds.
 */
const scrubRest = 4;
const scrubPaceMinMs = 20;
const scrubPaceMaxMs = 200;
/**
 * Reads of a page until each replica has answered: any of the three may answer, so about eight
 * usually suffice. A replica that never answers is away.
 */
const scrubAttempts = 60;
/**
 * The leader has heard from a replica within this time, and the replica lacks fewer entries than
 * this: so it has them long before the second comparison.
 */
const scrubSilenceMs = 5000;
const scrubLag = 1000;
/**
 * A replica that diverges in so many pages is to be replaced, whatever its other pages contain.
 */
const scrubDivergentPages = 16;

export type Divergence = Record<Finding['what'], number>;

export type ScrubResult =
  /** There is one replica, and nothing to compare. */
  | { readonly outcome: 'alone' }
  | {
      /** Partial: some replica was away, was catching up, or did not answer. */
      readonly outcome: 'whole' | 'partial';
      readonly away: readonly string[];
      /** By compared server. A lower bound: a scrub that finds much stops early. */
      readonly divergent: ReadonlyMap<string, Divergence>;
    };

export interface StreamScrub {
  readonly nc: NatsConnection;
  readonly stream: string;
  readonly signal: AbortSignal;
  /**
   * Time between a suspicion and the look that confirms it, in which every working replica catches
   * up.
   */
  readonly confirmMs: number;
  readonly clock: Clock;
}

interface Group {
  /** The replicas that keep up. */
  readonly current: readonly string[];
  readonly away: readonly string[];
}

const nanosPerMs = 1_000_000;

/**
 * Under writes a replica is a little behind most of the time. A replica that is silent, or that
 * copies the whole stream, is away.
 */
const follows = ({ current, offline, active, lag = 0 }: PeerInfo): boolean =>
  offline !== true && active < scrubSilenceMs * nanosPerMs && (current || lag <= scrubLag);

async function groupOf({ nc, stream }: StreamScrub): Promise<Group> {
  const manager = await jetstreamManager(nc, { checkAPI: false, timeout: limits.scrubReadMs });
  const { cluster } = await manager.streams.info(stream);
  const followers = cluster?.replicas ?? [];
  const names = (replicas: readonly PeerInfo[]): string[] => replicas.map(({ name }) => name);
  return {
    current: [...(cluster?.leader === undefined ? [] : [cluster.leader]), ...names(followers.filter(follows))],
    away: names(followers.filter((replica) => !follows(replica))),
  };
}

const isEnough = (reads: readonly ReplicaRead[], servers: readonly string[]): boolean => {
  const answered = serversIn(reads);
  return servers.every((server) => answered.includes(server)) && (agree(reads) || isConclusive(reads, servers));
};

const restMs = (tookMs: number): number => Math.min(Math.max(scrubPaceMinMs, tookMs * scrubRest), scrubPaceMaxMs);

/** Reads the page until each server has answered: a reader cannot choose which one answers. */
async function readPage(scrub: StreamScrub, from: number, servers: readonly string[]): Promise<ReplicaRead[]> {
  const reads: ReplicaRead[] = [];
  for (let attempt = 0; attempt < scrubAttempts && !isEnough(reads, servers); attempt++) {
    scrub.signal.throwIfAborted();
    const startMs = scrub.clock.monotonicMs();
    const read = await readReplica(scrub.nc, scrub.stream, from).catch(() => undefined);
    if (read !== undefined && servers.includes(read.server)) reads.push(read);
    // Commits come first: slow reads are followed by longer pauses.
    const tookMs = scrub.clock.monotonicMs() - startMs;
    await sleep(restMs(tookMs), scrub.signal);
  }
  return reads;
}

const isSame = (one: Finding, other: Finding): boolean =>
  one.sequence === other.sequence && one.server === other.server && one.what === other.what;

interface Page {
  readonly findings: readonly Finding[];
  readonly end: number;
  readonly silent: readonly string[];
}

async function comparePage(scrub: StreamScrub, from: number, servers: readonly string[]): Promise<Page> {
  const reads = await readPage(scrub, from, servers);
  const silentIn = (seen: readonly ReplicaRead[]): string[] =>
    servers.filter((server) => !serversIn(seen).includes(server));
  const page = { findings: compareReads(reads), end: endOf(reads), silent: silentIn(reads) };
  if (page.findings.length === 0) return page;

  await sleep(scrub.confirmMs, scrub.signal);
  const { current } = await groupOf(scrub);
  const again = await readPage(
    scrub,
    from,
    servers.filter((server) => current.includes(server)),
  );
  const confirmed = compareReads(again);
  return {
    findings: page.findings.filter((finding) => confirmed.some((other) => isSame(finding, other))),
    end: Math.min(page.end, endOf(again)),
    silent: silentIn(again),
  };
}

/** @throws if the replicas of the stream cannot be listed, and when the signal aborts. */
export async function scrubStream(scrub: StreamScrub): Promise<ScrubResult> {
  const group = await groupOf(scrub);
  if (group.current.length + group.away.length < 2) return { outcome: 'alone' };
  const away = new Set(group.away);
  const divergent = new Map(group.current.map((server) => [server, { missing: 0, extra: 0, different: 0 }]));
  let divergentPages = 0;
  for (let from = 1; from < Infinity && divergentPages < scrubDivergentPages;) {
    const servers = group.current.filter((server) => !away.has(server));
    if (servers.length < 2) break;
    const { findings, end, silent } = await comparePage(scrub, from, servers);
    for (const server of silent) away.add(server);
    for (const { server, sequence, what } of findings) {
      const counts = divergent.get(server);
      if (sequence <= end && counts !== undefined) counts[what]++;
    }
    if (findings.length > 0) divergentPages++;
    from = end + 1;
  }
  for (const server of away) divergent.delete(server);
  return { outcome: away.size === 0 ? 'whole' : 'partial', away: [...away], divergent };
}
