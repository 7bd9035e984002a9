/** What programs share. */
import type { Mutant } from '../mutant.ts';

export const sharedMutants: readonly Mutant[] = [
  {
    name: 'revoked jti accepted',
    guard: 'A token revoked by its jti is refused whatever its iat (docs/security.md)',
    file: 'schemas/api/tenant.ts',
    changes: [{ in: 'isCovered', replace: "match.by === 'jti' ? limits.issuerAheadMs / 1000 : 0", by: '0' }],
    killedBy: 'test/attacks/tokens/token-issued-ahead.test.ts',
  },
  {
    name: 'deletion by the wall clock',
    guard: 'Deletion by age uses a clock that does not jump (ADR 13)',
    file: 'lib/time/cautious-clock.ts',
    changes: [
      {
        in: 'CautiousClock.read',
        replace: 'isSettled ? wallMs : Math.min(wallMs, this.#trustedMs + passedMs * (1 + drift))',
        by: 'wallMs',
      },
    ],
    killedBy: 'test/lib/time/cautious-clock.test.ts',
  },
  {
    name: 'revocation push not verified',
    guard: 'After a push, the copies of all NATS servers are compared (ADR 14)',
    file: 'lib/nats/account-claims.ts',
    changes: [{ in: 'nextClaims', replace: 'held.every', by: 'held.some' }],
    killedBy: 'test/lib/nats/account-claims.test.ts',
  },
  {
    name: 'load takes the time from the wall clock',
    guard: 'The next owner of a partition continues from the time of the one before it (ADR 13)',
    file: 'lib/time/cautious-clock.ts',
    changes: [{ in: 'CautiousClock.constructor', replace: 'Math.min(wallMs, from?.atMs ?? wallMs)', by: 'wallMs' }],
    killedBy: 'test/lib/time/cautious-clock.test.ts',
  },
  {
    name: 'tombstones deleted by the wall clock',
    guard: 'A deleted record stays readable for seven days, whatever the wall clock shows (ADR 13)',
    file: 'lib/time/cautious-clock.ts',
    changes: [{ in: 'CautiousClock.nowMs', replace: 'this.read().atMs', by: 'this.#clock.nowMs()' }],
    killedBy: 'simulation',
  },
  {
    name: 'epochs announced without the restore offset',
    guard: 'After a restore no agent mistakes a new desired set for an older one (A4)',
    file: 'schemas/records/cluster.ts',
    changes: [{ in: 'announcedEpoch', replace: '(epochBases?.[partition] ?? 0) + revision', by: 'revision' }],
    killedBy: 'simulation',
  },
  {
    name: 'compare-and-set without the compare',
    guard: 'Epochs and members move only by compare-and-set (ADR 8)',
    file: 'lib/nats/kv-keys.ts',
    changes: [{ in: 'compareAndSet', omit: 'head.set(expectedSequence, String(expected))' }],
    killedBy: 'test/lib/nats/kv-keys.test.ts',
  },
  {
    name: 'gap in a page not detected',
    guard: 'A page of a read that arrives with a gap is refused (ADR 11)',
    file: 'lib/nats/direct-reads.ts',
    changes: [{ in: 'askOnce.callback', never: 'gap !== undefined' }],
    killedBy: 'test/integration/lib/direct-reads.test.ts',
  },
  {
    name: 'host may speak for others',
    guard: 'The NATS server holds a host to its own subjects (A7)',
    file: 'lib/nats/host-credentials.ts',
    changes: [{ in: 'permissionsOf', replace: '`agent.${host}.${user}.*`', by: "'agent.>'" }],
    killedBy: 'test/integration/dev/nats.test.ts',
  },
  {
    name: 'load without slices',
    guard: 'A load yields to the renewal of the lease (ADR 11)',
    file: 'lib/time/slices.ts',
    changes: [{ in: 'createSlices.run.slice', omit: '!isOver()' }],
    killedBy: 'test/lib/time/slices.test.ts',
  },
  {
    name: 'message handled without slices',
    guard: 'The work of a message yields to other work (ADR 11)',
    file: 'lib/time/slices.ts',
    changes: [{ in: 'createSlices.startNow', always: 'tookMs < leftMs' }],
    killedBy: 'test/lib/time/slices.test.ts',
  },
];
