/**
 * The tenants of a run and what is particular to each. They are few and have small caps, so that
 * their clients meet.
 */

export const tenants = ['t1', 't2', 't3', 't4'] as const;
/** A tenant whose containers crash, and for whom some calls of the engine fail. */
export const unluckyTenant = 't4';
/**
 * A start of a container that failed or backs off raises its generation, and only its host knows
 * whether it does. So clients of these tenants start only stopped containers, and the checker
 * judges their generations. Clients of the other tenants start anything, and their histories leave
 * generations out.
 */
export const exactTenants: readonly string[] = ['t1', 't2'];
/**
 * Tags of the images of a run: any version runs with a good one; a bad one crashes or is not there.
 */
export const goodTags = ['latest', 'stable', 'next'] as const;
export const crashingTag = 'crashing';
export const missingTag = 'missing';
/** A tag whose pull does not end. */
export const slowTag = 'slow';
const allTags = [...goodTags, ...goodTags, crashingTag, missingTag] as const;
/**
 * A roll-back raises a generation when its host says so. Clients of tenants whose generations are
 * judged update only to good versions, which are never rolled back.
 */
export const tagsOf = (tenant: string): readonly [string, ...string[]] =>
  exactTenants.includes(tenant) ? goodTags : allTags;

/** Of these tenants some containers have variables near the limits of the API. */
export const largeTenants: readonly string[] = ['t2', 't3'];
/** One write of theirs in so many is about such variables. */
export const largeOnceIn = 3;

/**
 * Two tenants without a history. The containers of the first live long, are large, and are updated
 * again and again; those of the second are jobs.
 */
export const updatesTenant = 'updates';
export const jobsTenant = 'jobs';
export const allTenants: readonly string[] = [...tenants, updatesTenant, jobsTenant];

/** End of a program by itself, counted from its start. */
export interface Ending {
  readonly afterMs: number;
  readonly exitCode: number;
}

/** @param count makes the tag differ from all others of the run */
export const jobTag = ({ afterMs, exitCode }: Ending, count: number): string => `ends-${exitCode}-${afterMs}-${count}`;

/** `undefined` if it runs until it is stopped. */
export function endingOf(tag: string): Ending | undefined {
  const [, exitCode, afterMs] = /^ends-(\d+)-(\d+)-/.exec(tag) ?? [];
  return exitCode === undefined ? undefined : { exitCode: Number(exitCode), afterMs: Number(afterMs) };
}

/** Small enough to bind: a tenant's clients always want more containers than this. */
export const caps = { containers: 6, cpuMillis: 2_000, memBytes: 768 * 1024 ** 2 } as const;

/**
 * The index of the gateway that gets a tenant's writes. One of its clients only reads, at the other
 * gateway: an owner that is cut off together with that gateway gets only reads.
 */
export const homeOf = (tenant: string): number => (tenants as readonly string[]).indexOf(tenant) % 2;

/**
 * Tenants of which only the first client writes, and seldom; the others read at the other gateway.
 * An owner that is cut off during a write discards its memory, so for a busy tenant a read would
 * hardly ever find any.
 */
export const quietTenants: readonly string[] = ['t1', 't2'];
