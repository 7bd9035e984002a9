/** Which tenants of a shared stream lose their oldest messages, and how many each keeps. Decides only. */
import type { TenantId } from '../schemas/ids.ts';

export interface TenantUse {
  /** Null: of messages that name no tenant. They take a share as a tenant does, and are never trimmed. */
  readonly tenant: TenantId | null;
  readonly messages: number;
  /** Estimated: messages × the mean size of those that were sampled. */
  readonly bytes: number;
}

export interface Trim {
  readonly tenant: TenantId;
  /** At least 1: for the server, a purge that keeps 0 is one without a limit. */
  readonly keep: number;
}

/**
 * The highest level at which the tenants fit together, when each has at most this many bytes. It is never below the fair
 * share (`targetBytes` / number of tenants), so a tenant within its fair share is never above the level.
 */
function levelOf(bytes: readonly number[], targetBytes: number): number {
  let left = targetBytes;
  const ascending = [...bytes].sort((one, other) => one - other);
  for (const [index, next] of ascending.entries()) {
    const share = left / (ascending.length - index);
    if (next > share) return share;
    left -= next;
  }
  return Infinity;
}

/** Tenants above the level, largest first. `streamBytes` is exact, so the estimates are scaled to it. */
export function trimsOf(uses: readonly TenantUse[], streamBytes: number, targetBytes: number): readonly Trim[] {
  const estimated = uses.reduce((sum, { bytes }) => sum + bytes, 0);
  if (estimated <= 0) return [];
  const scale = streamBytes / estimated;
  const level = levelOf(
    uses.map(({ bytes }) => bytes * scale),
    targetBytes,
  );
  return uses
    .filter(({ bytes }) => bytes * scale > level)
    .sort((one, other) => other.bytes - one.bytes)
    .flatMap(({ tenant, messages, bytes }) => {
      const keep = Math.max(1, Math.floor((messages * level) / (bytes * scale)));
      return tenant === null || keep >= messages ? [] : [{ tenant, keep }];
    });
}
