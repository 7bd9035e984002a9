/**
 * The tenants of a run, and what is particular to each. Few, with small caps, so that their clients
 * meet.
 */

export const tenants = ['t1', 't2', 't3', 't4'] as const;
/** Its containers crash, and the engine refuses some of them. */
export const unluckyTenant = 't4';
/**
 * A start of what has failed or backs off raises its generation, and nobody but its host knows
 * whether it does. So of these tenants, nothing is started but what is stopped, and generations are
 * judged; of the others anything is started by anybody, and generations are left out of the
 * history.
 */
export const exactTenants: readonly string[] = ['t1', 't2'];
/** So small that they bind: a tenant's clients want more containers than this all the time. */
export const caps = { containers: 6, cpuMillis: 2_000, memBytes: 768 * 1024 ** 2 } as const;

/**
 * A tenant's writes go to one gateway, its home, and one of its clients only reads, at the other:
 * an owner that is cut off together with that other one is asked for nothing but what it remembers.
 */
export const homeOf = (tenant: string): number => (tenants as readonly string[]).indexOf(tenant) % 2;

/**
 * Of these only the first client writes, and seldom; the others read at the other gateway. An owner
 * with a write under way when it is cut off forgets what it had, so of a busy tenant it would
 * hardly ever be asked for what it remembers.
 */
export const quietTenants: readonly string[] = ['t1', 't2'];
