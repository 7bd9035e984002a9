/** Secrets and registry logins on their way through a gateway (ADR 37). */
import { KiB, minutes, seconds } from '../units.ts';

export const secrets = {
  /** Attempts to seal a new value, since others may have changed the secret meanwhile. */
  sealAttempts: 4,
  /** Steps of the values with which the box of agents is warmed up. */
  boxWarmUpBytes: 8 * KiB,
  /** The time for the answer of an owner: an agent waits longer. */
  unsealMs: 4 * seconds,
  /** Asks of agents under way in a gateway. Each holds a value of at most `secretBytes`. */
  unsealsUnderWay: 512,
  /** Of one host; a burst serves a full host that has lost all it kept. */
  unsealsPerSecond: 50,
  unsealBurst: 4000,
  /** Greatest distance of the time of an ask from the clock of the gateway. */
  unsealSkewMs: 5 * minutes,
  /** Of the JWT of a host's user, which has about 1,100. */
  hostJwtChars: 8 * KiB,
  /** Interval at which a gateway reads the keys of the account HOSTS again. */
  hostsAccountFreshMs: 10 * seconds,
} as const;
