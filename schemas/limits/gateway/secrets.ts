/** Secrets and registry logins on their way through a gateway (ADR 37). */
import { minutes, seconds } from '../units.ts';

export const secrets = {
  /** Attempts to seal a new value, since others may have changed the secret meanwhile. */
  sealAttempts: 4,
  /** Greatest distance of the time of an ask from the clock of the gateway. */
  unsealSkewMs: 5 * minutes,
  /** Interval at which a gateway reads the keys of the account HOSTS again. */
  hostsAccountFreshMs: 10 * seconds,
} as const;
