/**
 * NATS credentials of hosts. Keys are signed outside of turns, and only if the turn will need the
 * signature: for a valid join token, or for an enrolled key.
 */
import type { Clock } from '../../lib/time/clock.ts';
import { signHostJwt, type HostsAccount } from '../../lib/nats/host-credentials.ts';
import type { HostKey } from '../../schemas/ids.ts';
import { wholeSeconds } from '../../schemas/quantity.ts';
import type { WriteAsk } from '../../schemas/wire/asks.ts';
import type { Prepared } from '../domain/decide.ts';
import { isJustRevoked, mayEnrol, mayRenew } from '../domain/host/decide.ts';
import type { Partition } from '../partition.ts';

export interface HostCredentialsOptions {
  readonly clusterId: string;
  readonly account: HostsAccount;
  readonly ttlMs: number;
  /** NATS servers at the addresses that hosts use. */
  readonly natsUrls: readonly string[];
  readonly clock: Clock;
  /** Absent: signs by the wall clock, as NATS checks it. */
  readonly sign?: typeof signHostJwt | undefined;
}

export interface HostCredentials {
  sign(host: HostKey, publicKey: string): Promise<string>;
  /** Makes what an ask needs before its turn; undefined: it needs nothing. */
  prepare(partition: Partition, ask: WriteAsk): Promise<Prepared | undefined> | undefined;
}

export function createHostCredentials(options: HostCredentialsOptions): HostCredentials {
  const { clusterId, account, ttlMs, natsUrls, clock } = options;
  const sign: HostCredentials['sign'] = async (host, publicKey) => {
    const expiresAtS = wholeSeconds(clock.nowMs() + ttlMs);
    return (options.sign ?? signHostJwt)(account, { host, publicKey, expiresAtS });
  };
  return {
    sign,
    prepare({ view }, ask) {
      if (ask.type !== 'host.enrol' && ask.type !== 'host.renew') return undefined;
      const common = { cluster: clusterId, natsUrls };
      const nowMs = clock.nowMs();
      const may = ask.type === 'host.enrol' ? mayEnrol(view, ask, nowMs) : mayRenew(view, ask, nowMs);
      const isGood = may && !isJustRevoked(view, ask.publicKey, nowMs);
      if (!isGood) return Promise.resolve({ enrolment: { ...common, jwt: '' } });
      return sign(ask.host, ask.publicKey).then((jwt) => ({ enrolment: { ...common, jwt } }));
    },
  };
}
