/**
 * The host's NATS credentials while the agent runs. The agent renews them well before they expire:
 * it says hello again with its key, and the control plane signs a new JWT unless the host was
 * enrolled again with another key.
 */
import type { Clock } from '../../../lib/time/clock.ts';
import type { Log } from '../../../lib/log.ts';
import { createLazyFile } from '../../disk/files.ts';
import { identityPath, issuerOf, lifetimeOf, type Identity } from './identity.ts';
import type { StateDisk } from '../../disk/state-disk.ts';

export interface Credentials {
  /** The JWT for the next connection. */
  jwt(): string;
  /** Milliseconds since 1970; `null` if they never expire. */
  expiryMs(): number | null;
  /**
   * Takes note of the key that now signs credentials of hosts.
   * @returns `true` if it is news that another key signed these, so that a renewal is due
   */
  signer(key: string): boolean;
  /** The key to send with a hello; `undefined` unless new credentials are due. */
  renewKey(): string | undefined;
  /** Milliseconds between two checks of `renewKey`. */
  readonly checkEveryMs: number;
  /** @returns `true` if another key signed them than the previous ones */
  renewed(jwt: string): boolean;
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

export function createCredentials(
  initial: Identity,
  options: {
    readonly publicKey: string;
    readonly stateDir: string;
    readonly disk: StateDisk;
    readonly clock: Clock;
    readonly log: Log;
  },
): Credentials {
  const { publicKey, stateDir, disk, clock, log } = options;
  let identity = initial;
  let life = lifetimeOf(initial.jwt);
  let signer: string | undefined;
  const isOfOther = (): boolean => signer !== undefined && signer !== issuerOf(identity.jwt);
  const file = createLazyFile(identityPath(stateDir), () => JSON.stringify(identity), 0, disk);

  return {
    jwt: () => identity.jwt,
    expiryMs: () => life?.untilMs ?? null,
    signer(key) {
      if (key === signer) return false;
      signer = key;
      return isOfOther();
    },
    renewKey() {
      if (isOfOther()) return publicKey;
      if (life === undefined) return undefined;
      return life.untilMs - clock.nowMs() < (life.untilMs - life.sinceMs) * renewWithLeft ? publicKey : undefined;
    },
    checkEveryMs: life === undefined ? hourMs : Math.min(hourMs, (life.untilMs - life.sinceMs) / 20),
    renewed(jwt) {
      const isMoved = issuerOf(jwt) !== issuerOf(identity.jwt);
      identity = { ...identity, jwt };
      life = lifetimeOf(jwt);
      file.touch();
      log.info('credentials_renewed', { untilMs: life?.untilMs ?? null });
      return isMoved;
    },
    keep: () => file.touch(),
    flush: () => file.flush(),
  };
}
