/**
 * The host's NATS credentials while the agent runs. The agent renews them well before they expire:
 * it says hello again with its key, and the control plane signs a new JWT unless the host was
 * enrolled again with another key.
 *
 * An agent enrolled before 0.1.0 has unbound credentials, and trades them for bound ones, which
 * name its key in their subjects (ADR 22). Bound ones from before 0.2.0 do not permit sessions, and
 * are renewed at once (ADR 39). It keeps both until the unbound ones expire: a control
 * plane that is rolled back to before 0.1.0 answers those alone. Bound ones reach the disk once the
 * control plane has answered them, so a crash at any step leaves credentials that work.
 */
import { backoffMs, type BackoffBounds } from '../../../lib/time/backoff.ts';
import type { Clock } from '../../../lib/time/clock.ts';
import type { Log } from '../../../lib/log.ts';
import { limits } from '../../../schemas/limits.ts';
import type { Sender } from '../../../schemas/wire/subjects.ts';
import { createLazyFile } from '../../disk/files.ts';
import {
  identityPath,
  isOver,
  lifetimeOf,
  newest,
  permitsSessions,
  readOnce,
  senderOf,
  type StoredIdentity,
} from './identity.ts';
import type { StateDisk } from '../../disk/state-disk.ts';

export interface Credentials {
  /** For the next connection. */
  jwt(): string;
  /** The sender that these credentials name. */
  sender(): Sender;
  readonly publicKey: string;
  /** Milliseconds since 1970; null: they never expire. */
  expiryMs(): number | null;
  /** The key to send with a hello while new credentials are due. */
  renewKey(): string | undefined;
  /** Whether the next connection may serve sessions. */
  permitSessions(): boolean;
  /** How often to check `renewKey`. */
  readonly checkEveryMs: number;
  renewed(jwt: string): void;
  /** How long to wait before asking for bound credentials; undefined: they are in use. */
  askBoundInMs(): number | undefined;
  /**
   * Takes the answer to a request for bound ones; undefined: it had none. @returns whether there
   * are bound ones to connect with
   */
  offered(jwt: string | undefined): boolean;
  /** The control plane has answered these credentials: bound ones on trial are kept. */
  proved(): void;
  /** Bound ones are in use that the control plane has not answered yet. */
  isOnTrial(): boolean;
  /** Whether unbound ones are left as a fallback. */
  hasFallback(): boolean;
  fallBack(): void;
  /**
   * The unbound ones get no answer either: returns to bound ones that worked before, if there are
   * any.
   */
  returnToBound(): boolean;
  /** Writes them to the disk, with retries. */
  keep(): void;
  flush(): Promise<void>;
}

/**
 * Renewal starts when this part of their lifetime is left, so that days without a control plane do
 * no harm.
 */
const renewWithLeft = 1 / 3;
const hourMs = 3_600_000;

/** The unbound ones, the bound ones, and those on trial. */
const jwtsInUse = 3;

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
  /** Bound ones that the control plane has not answered yet. */
  let onTrial: string | undefined;
  let isFallenBack = false;
  let failures = 0;
  let askedAtMs = 0;
  /** When the control plane last renewed them without the right to serve sessions. */
  let unpermittedAtMs: number | undefined;
  /** Each message, and each round of the loops, asks what they say. */
  const read = readOnce(
    (jwt) => ({
      sender: senderOf({ host: initial.host, jwt }),
      life: lifetimeOf(jwt),
      permitsSessions: permitsSessions(jwt),
    }),
    jwtsInUse,
  );
  const file = createLazyFile(identityPath(stateDir), () => JSON.stringify(identity), 0, disk);

  const isBound = (jwt: string): boolean => read(jwt).sender.user !== undefined;
  const hasEnded = (jwt: string): boolean => isOver(read(jwt).life, clock.nowMs());
  const inUse = (): string => {
    if (isFallenBack) return identity.jwt;
    const { bound_jwt: bound } = identity;
    return onTrial ?? (bound === undefined || hasEnded(bound) ? identity.jwt : bound);
  };
  const store = (jwt: string): void => {
    const { bound_jwt: _, ...rest } = identity;
    if (!isBound(jwt)) identity = { ...identity, jwt };
    // The unbound ones stay usable until they expire.
    else if (!isBound(identity.jwt) && !hasEnded(identity.jwt)) identity = { ...identity, bound_jwt: jwt };
    else identity = { ...rest, jwt };
    file.touch();
  };
  const hasFallback = (): boolean => isBound(inUse()) && !isBound(identity.jwt) && !hasEnded(identity.jwt);
  /** Bound ones from before 0.2.0. A control plane of that release has no others. */
  const lacksRights = (): boolean => {
    const { sender, permitsSessions: isPermitted } = read(inUse());
    if (sender.user === undefined || isPermitted) return false;
    return unpermittedAtMs === undefined || clock.monotonicMs() - unpermittedAtMs >= limits.boundRetryMaxMs;
  };
  const failed = (): void => {
    failures += 1;
    askedAtMs = clock.monotonicMs();
  };

  const initialLife = lifetimeOf(newest(initial).jwt);
  return {
    jwt: inUse,
    sender: () => read(inUse()).sender,
    publicKey,
    expiryMs: () => read(inUse()).life?.untilMs ?? null,
    renewKey() {
      const { life } = read(inUse());
      if (lacksRights()) return publicKey;
      if (life === undefined) return undefined;
      return life.untilMs - clock.nowMs() < (life.untilMs - life.sinceMs) * renewWithLeft ? publicKey : undefined;
    },
    checkEveryMs:
      initialLife === undefined ? hourMs : Math.min(hourMs, (initialLife.untilMs - initialLife.sinceMs) / 20),
    permitSessions: () => read(inUse()).permitsSessions,
    renewed(jwt) {
      store(jwt);
      if (!read(jwt).permitsSessions) unpermittedAtMs = clock.monotonicMs();
      log.info('credentials_renewed', { untilMs: read(jwt).life?.untilMs ?? null });
    },
    askBoundInMs() {
      if (isBound(inUse())) return undefined;
      if (failures === 0) return 0;
      return Math.max(0, askedAtMs + backoffMs(failures - 1, boundRetry) - clock.monotonicMs());
    },
    offered(jwt) {
      if (jwt === undefined || !isBound(jwt)) {
        failed();
        return false;
      }
      onTrial = jwt;
      isFallenBack = false;
      return true;
    },
    proved() {
      if (!isBound(inUse())) return;
      failures = 0;
      if (onTrial === undefined) return;
      const jwt = onTrial;
      onTrial = undefined;
      store(jwt);
      log.info('credentials_bound', { untilMs: read(jwt).life?.untilMs ?? null });
    },
    isOnTrial: () => onTrial !== undefined,
    hasFallback,
    returnToBound() {
      isFallenBack = false;
      return isBound(inUse());
    },
    fallBack() {
      if (!hasFallback()) return;
      // Credentials that worked before are requested again at once: the control plane may support
      // them by now.
      if (onTrial !== undefined) failed();
      onTrial = undefined;
      isFallenBack = true;
    },
    keep: () => file.touch(),
    flush: () => file.flush(),
  };
}
