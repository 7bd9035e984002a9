/**
 * The host's NATS credentials while the agent runs. They end, and are renewed well before that: the
 * agent says hello once more, with its key, and the control plane signs it a new JWT, unless the
 * host was enrolled again with another key.
 *
 * An agent that was enrolled before 0.1.0 has unbound credentials, and trades them for
 * bound ones, which name its key in their subjects (ADR 22). It keeps both until the unbound ones
 * end: a control plane that was set back to before 0.1.0 answers those alone. The bound ones
 * are written to the disk once they were answered, so a crash at any step leaves credentials that
 * work.
 */
import { backoffMs, type BackoffBounds } from '../../lib/backoff.ts';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { Sender } from '../../schemas/wire/subjects.ts';
import { createLazyFile } from '../disk/files.ts';
import { identityPath, lifetimeOf, newest, senderOf, type StoredIdentity } from './identity.ts';
import type { StateDisk } from '../disk/state-disk.ts';

export interface Credentials {
  /** What the next connection is made with. */
  jwt(): string;
  /** Who the agent is by them. */
  sender(): Sender;
  readonly publicKey: string;
  /** Milliseconds since 1970; null where they have no end. */
  expiryMs(): number | null;
  /** The key to name in a hello, while new credentials are due. */
  renewKey(): string | undefined;
  /** How often it is worth to ask `renewKey`. */
  readonly checkEveryMs: number;
  renewed(jwt: string): void;
  /** How long to wait before bound credentials are asked for; undefined: they are in use. */
  askBoundInMs(): number | undefined;
  /**
   * What came of asking; undefined: none were given. @returns whether there are bound ones to
   * connect with
   */
  offered(jwt: string | undefined): boolean;
  /** They were answered: bound ones that were tried are kept. */
  proved(): void;
  /** Bound ones are in use that were not answered yet. */
  isOnTrial(): boolean;
  /** Whether there are unbound ones to go back to. */
  hasFallback(): boolean;
  fallBack(): void;
  /**
   * The unbound ones are not answered either: back to bound ones, where there are any that were.
   */
  returnToBound(): boolean;
  /** Writes them, as soon as the disk takes them. */
  keep(): void;
  flush(): Promise<void>;
}

/**
 * Renewed when this part of their life is left, so that a control plane that is away for days does
 * not matter.
 */
const renewWithLeft = 1 / 3;
const hourMs = 3_600_000;

const isBound = (jwt: string, { host }: StoredIdentity): boolean => senderOf({ host, jwt }).user !== undefined;

export function createCredentials(
  initial: StoredIdentity,
  options: {
    readonly publicKey: string;
    readonly stateDir: string;
    /** Between attempts to get bound credentials. */
    readonly boundRetry: BackoffBounds;
    readonly disk: StateDisk;
    readonly clock: Clock;
    readonly log: Log;
  },
): Credentials {
  const { publicKey, stateDir, boundRetry, disk, clock, log } = options;
  let identity = initial;
  /** Bound ones that were not answered yet. */
  let onTrial: string | undefined;
  let isFallenBack = false;
  let failures = 0;
  let askedAtMs = 0;
  const file = createLazyFile(identityPath(stateDir), () => JSON.stringify(identity), 0, disk);

  const isOver = (jwt: string): boolean => (lifetimeOf(jwt)?.untilMs ?? Infinity) <= clock.nowMs();
  const inUse = (): string => {
    if (isFallenBack) return identity.jwt;
    const { bound_jwt: bound } = identity;
    return onTrial ?? (bound === undefined || isOver(bound) ? identity.jwt : bound);
  };
  const store = (jwt: string): void => {
    const { bound_jwt: _, ...rest } = identity;
    if (!isBound(jwt, identity)) identity = { ...identity, jwt };
    // The unbound ones are of use until their end.
    else if (!isBound(identity.jwt, identity) && !isOver(identity.jwt)) identity = { ...identity, bound_jwt: jwt };
    else identity = { ...rest, jwt };
    file.touch();
  };
  const hasFallback = (): boolean =>
    isBound(inUse(), identity) && !isBound(identity.jwt, identity) && !isOver(identity.jwt);
  const failed = (): void => {
    failures += 1;
    askedAtMs = clock.monotonicMs();
  };

  const initialLife = lifetimeOf(newest(initial).jwt);
  return {
    jwt: inUse,
    sender: () => senderOf({ host: identity.host, jwt: inUse() }),
    publicKey,
    expiryMs: () => lifetimeOf(inUse())?.untilMs ?? null,
    renewKey() {
      const life = lifetimeOf(inUse());
      if (life === undefined) return undefined;
      return life.untilMs - clock.nowMs() < (life.untilMs - life.sinceMs) * renewWithLeft ? publicKey : undefined;
    },
    checkEveryMs:
      initialLife === undefined ? hourMs : Math.min(hourMs, (initialLife.untilMs - initialLife.sinceMs) / 20),
    renewed(jwt) {
      store(jwt);
      log.info('credentials_renewed', { untilMs: lifetimeOf(jwt)?.untilMs ?? null });
    },
    askBoundInMs() {
      if (isBound(inUse(), identity)) return undefined;
      if (failures === 0) return 0;
      return Math.max(0, askedAtMs + backoffMs(failures - 1, boundRetry) - clock.monotonicMs());
    },
    offered(jwt) {
      if (jwt === undefined || !isBound(jwt, identity)) {
        failed();
        return false;
      }
      onTrial = jwt;
      isFallenBack = false;
      return true;
    },
    proved() {
      if (!isBound(inUse(), identity)) return;
      failures = 0;
      if (onTrial === undefined) return;
      const jwt = onTrial;
      onTrial = undefined;
      store(jwt);
      log.info('credentials_bound', { untilMs: lifetimeOf(jwt)?.untilMs ?? null });
    },
    isOnTrial: () => onTrial !== undefined,
    hasFallback,
    returnToBound() {
      isFallenBack = false;
      return isBound(inUse(), identity);
    },
    fallBack() {
      if (!hasFallback()) return;
      // Those that worked before are asked for at once: the control plane may know how to answer by
      // now.
      if (onTrial !== undefined) failed();
      onTrial = undefined;
      isFallenBack = true;
    },
    keep: () => file.touch(),
    flush: () => file.flush(),
  };
}
