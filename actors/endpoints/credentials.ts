/**
 * NATS credentials of hosts. Keys are signed outside of turns, and only if the turn will need the
 * signature: for a valid join token, or for an enrolled key.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import { ConfigurationError } from '../../lib/config.ts';
import type { Log } from '../../lib/log.ts';
import { isSigningKey } from '../../lib/nats/accounts/servers.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { signHostJwt, signingKeyOf, type HostsAccount } from '../../lib/nats/host-credentials.ts';
import type { HostKey } from '../../schemas/ids.ts';
import { wholeSeconds } from '../../schemas/quantity.ts';
import type { WriteAsk } from '../../schemas/wire/asks.ts';
import type { Prepared } from '../domain/turn.ts';
import { isJustRevoked, mayEnrol, mayRenew } from '../domain/host/decide.ts';
import type { Partition } from '../partition.ts';

export interface HostCredentialsOptions {
  readonly clusterId: string;
  readonly account: HostsAccount;
  readonly ttlMs: number;
  /** NATS servers at the addresses that hosts use. */
  readonly natsUrls: readonly string[];
  readonly clock: Clock;
  /** By default, signs by the wall clock, as NATS checks it. */
  readonly sign?: typeof signHostJwt | undefined;
}

export interface HostCredentials {
  /** The public key of the signatures; absent if a test signs. */
  readonly signer?: string;
  sign(host: HostKey, publicKey: string): Promise<string>;
  /** Makes the values that an ask needs before its turn; `undefined` if it needs none. */
  prepare(partition: Partition, ask: WriteAsk): Promise<Prepared | undefined> | undefined;
}

export function createHostCredentials(options: HostCredentialsOptions): HostCredentials {
  const { clusterId, account, ttlMs, natsUrls, clock } = options;
  const sign: HostCredentials['sign'] = async (host, publicKey) => {
    const expiresAtS = wholeSeconds(clock.nowMs() + ttlMs);
    return (options.sign ?? signHostJwt)(account, { host, publicKey, expiresAtS });
  };
  return {
    ...(options.sign === undefined ? { signer: signingKeyOf(account) } : {}),
    sign,
    prepare({ view }, ask) {
      if (ask.type !== 'host.enrol' && ask.type !== 'host.renew') return undefined;
      const common = { cluster: clusterId, natsUrls };
      const nowMs = clock.nowMs();
      const may = ask.type === 'host.enrol' ? mayEnrol(view, ask, nowMs) : mayRenew(view, ask, nowMs);
      const isGood = may && !isJustRevoked(view, ask.publicKey, nowMs);
      if (!isGood) return Promise.resolve({ nowMs, enrolment: { ...common, jwt: '' } });
      return sign(ask.host, ask.publicKey).then((jwt) => ({ nowMs, enrolment: { ...common, jwt } }));
    },
  };
}

/**
 * Checks that the seed is one of the account's: with another, NATS refuses every host that enrols
 * or renews. Servers that do not answer in time say nothing about it.
 * @throws ConfigurationError
 */
export async function checkSigningSeed(
  system: Promise<NatsConnection>,
  account: HostsAccount,
  log: Log,
): Promise<void> {
  const key = signingKeyOf(account);
  const isAccepted = await isSigningKey(system, account.publicKey, key).catch((error: unknown) => {
    log.warn('signing_seed_unchecked', { error });
    return undefined;
  });
  if (isAccepted !== false) return;
  throw new ConfigurationError([
    `HOSTS_SIGNING_SEED_FILE: it has the seed of ${key}, which is no signing key of the account ${account.publicKey} ` +
      'at any NATS server: hosts would be refused. Give it hosts-signing.seed of the folder whose hosts.jwt is of ' +
      'this account, once `longshore nats-keys rotate` has told the servers (docs/deploy.md, Rotation and revocation)',
  ]);
}
