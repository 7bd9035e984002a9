/**
 * The host's NATS credentials while the agent runs. They end, and are renewed well before that: the agent says hello once
 * more, with its key, and the control plane signs it a new JWT, unless the host was enrolled again with another key.
 */
import type { Clock } from '../lib/clock.ts';
import type { Log } from '../lib/log.ts';
import { createLazyFile } from './files.ts';
import { identityPath, lifetimeOf, type Identity } from './identity.ts';
import type { StateDisk } from './state-disk.ts';

export interface Credentials {
  /** What the next connection is made with. */
  jwt(): string;
  readonly publicKey: string;
  /** Milliseconds since 1970; null where they have no end. */
  expiryMs(): number | null;
  /** The key to name in a hello, while new credentials are due. */
  renewKey(): string | undefined;
  /** How often it is worth to ask `renewKey`. */
  readonly checkEveryMs: number;
  renewed(jwt: string): void;
  /** Writes them, as soon as the disk takes them. */
  keep(): void;
  flush(): Promise<void>;
}

/** Renewed when this part of their life is left, so that a control plane that is away for days does not matter. */
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
  const file = createLazyFile(identityPath(stateDir), () => JSON.stringify(identity), 0, disk);
  const initialLife = lifetimeOf(initial);
  return {
    jwt: () => identity.jwt,
    publicKey,
    expiryMs: () => lifetimeOf(identity)?.untilMs ?? null,
    renewKey() {
      const life = lifetimeOf(identity);
      if (life === undefined) return undefined;
      return life.untilMs - clock.nowMs() < (life.untilMs - life.sinceMs) * renewWithLeft ? publicKey : undefined;
    },
    checkEveryMs:
      initialLife === undefined ? hourMs : Math.min(hourMs, (initialLife.untilMs - initialLife.sinceMs) / 20),
    renewed(jwt) {
      identity = { ...identity, jwt };
      file.touch();
      log.info('credentials_renewed', { untilMs: lifetimeOf(identity)?.untilMs ?? null });
    },
    keep: () => file.touch(),
    flush: () => file.flush(),
  };
}
