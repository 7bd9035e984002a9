/**
 * Compares the contents of the replicas of a stream. Pure. A stream changes while it is read, and
 * replicas follow with a delay. So a message counts as missing in a replica only if another replica
 * had it both before and after that one was read; and callers compare twice, some time apart,
 * before they report a difference.
 */

/**
 * One replica's answer to a read of a page: every message from the start of the page up to `to`.
 */
export interface ReplicaRead {
  readonly server: string;
  /** A digest of the message, by its sequence. */
  readonly held: ReadonlyMap<number, string>;
  /** `Infinity` if the replica has no messages after these. */
  readonly to: number;
}

export interface Finding {
  readonly sequence: number;
  readonly server: string;
  /** Compared with the majority. Without a majority, every replica is named. */
  readonly what: 'missing' | 'extra' | 'different';
}

/** The sequence up to which every read is complete. */
export const endOf = (reads: readonly ReplicaRead[]): number => Math.min(...reads.map(({ to }) => to));

const absent = '';

const valueIn = (read: ReplicaRead, sequence: number): string => read.held.get(sequence) ?? absent;

const readsOf = (reads: readonly ReplicaRead[], server: string): ReplicaRead[] =>
  reads.filter((read) => read.server === server);

export const serversIn = (reads: readonly ReplicaRead[]): string[] => [...new Set(reads.map(({ server }) => server))];

function sequencesOf(reads: readonly ReplicaRead[]): number[] {
  const end = endOf(reads);
  const all = new Set(reads.flatMap(({ held }) => [...held.keys()]));
  return [...all].filter((sequence) => sequence <= end);
}

/** `true` if all reads show the same messages. */
export function agree(reads: readonly ReplicaRead[]): boolean {
  return sequencesOf(reads).every((sequence) => new Set(reads.map((read) => valueIn(read, sequence))).size === 1);
}

/** `true` if `inner` was read between two reads of `outer`. */
function isBetween(reads: readonly ReplicaRead[], inner: string, outer: string): boolean {
  const first = reads.findIndex(({ server }) => server === outer);
  const last = reads.findLastIndex(({ server }) => server === outer);
  return reads.slice(first + 1, last).some(({ server }) => first >= 0 && server === inner);
}

/**
 * `true` if each server was read between two reads of each other, which proves that messages are
 * missing.
 */
export const isConclusive = (reads: readonly ReplicaRead[], servers: readonly string[]): boolean =>
  servers.every((inner) => servers.every((outer) => inner === outer || isBetween(reads, inner, outer)));

/**
 * The message of a replica at a sequence; `undefined` if its reads disagree, or if there is none.
 */
function valueOf(reads: readonly ReplicaRead[], server: string, sequence: number): string | undefined {
  const values = new Set(readsOf(reads, server).map((read) => valueIn(read, sequence)));
  return values.size === 1 ? [...values][0] : undefined;
}

/** @param reads in the order in which they were made */
export function compareReads(reads: readonly ReplicaRead[]): Finding[] {
  const servers = serversIn(reads);
  return sequencesOf(reads).flatMap((sequence) => {
    const values = new Map(servers.map((server) => [server, valueOf(reads, server, sequence)]));
    const holders = servers.filter((server) => values.get(server) !== absent);
    const isProven = (server: string): boolean =>
      values.get(server) !== absent || holders.some((holder) => isBetween(reads, server, holder));
    const isSettled = servers.every((server) => values.get(server) !== undefined && isProven(server));
    return isSettled ? judge(sequence, values as Map<string, string>) : [];
  });
}

function judge(sequence: number, values: ReadonlyMap<string, string>): Finding[] {
  const all = [...values.values()];
  if (new Set(all).size === 1) return [];
  const majority = all.find((value) => all.filter((other) => other === value).length > all.length / 2);
  const what = (value: string): Finding['what'] => {
    if (value === absent) return 'missing';
    return (majority ?? (all.includes(absent) ? absent : undefined)) === absent ? 'extra' : 'different';
  };
  return [...values]
    .filter(([, value]) => value !== majority)
    .map(([server, value]) => ({ sequence, server, what: what(value) }));
}
