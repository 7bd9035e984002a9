/**
 * The keys that issue the credentials of hosts: the account HOSTS and its signing keys, in the
 * account's JWT that `longshore nats-keys` writes (hosts.jwt). The file is on the gateway's
 * machine, so nobody who only has credentials of NATS can name a key.
 */
import Type from 'typebox';
import { ConfigurationError, readSettingFile } from '../../lib/config.ts';
import { decoder, DecodeError } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import type { Clock } from '../../lib/time/clock.ts';
import { limits } from '../../schemas/limits.ts';

const decodeAccount = decoder(
  Type.Object({
    sub: Type.String({ pattern: '^A[A-Z2-7]{55}$' }),
    nats: Type.Object({
      type: Type.Literal('account'),
      signing_keys: Type.Optional(Type.Array(Type.Union([Type.String(), Type.Object({ key: Type.String() })]))),
    }),
  }),
);

interface Account {
  readonly key: string;
  readonly signing: ReadonlySet<string>;
}

const name = 'HOSTS_ACCOUNT_FILE';

/** @throws ConfigurationError */
function readAccount(path: string): Account {
  try {
    const { sub, nats } = decodeAccount(Buffer.from(readSettingFile(name, path).split('.')[1] ?? '', 'base64url'));
    return {
      key: sub,
      signing: new Set(nats.signing_keys?.map((each) => (typeof each === 'string' ? each : each.key))),
    };
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    const todo = 'give it hosts.jwt of the folder of `longshore nats-keys` (docs/deploy.md, Keys and accounts)';
    throw new ConfigurationError([`${name}: ${path} has no JWT of a NATS account: ${todo}`]);
  }
}

export interface HostIssuers {
  /**
   * True if the account HOSTS issued a user's JWT, which has `issuer` as its `iss`, and `account`
   * as its `issuer_account` if a signing key is the `iss`.
   */
  has(issuer: string, account: string | undefined): boolean;
}

/**
 * Reads the file again now and then, so that a signing key that is added or taken away counts
 * without a restart. While the file can't be read, its last content counts.
 * @throws ConfigurationError
 */
export function hostIssuersOf(path: string, clock: Pick<Clock, 'monotonicMs'>, log: Log): HostIssuers {
  let account = readAccount(path);
  let freshUntilMs = clock.monotonicMs() + limits.hostsAccountFreshMs;
  const current = (): Account => {
    if (clock.monotonicMs() < freshUntilMs) return account;
    freshUntilMs = clock.monotonicMs() + limits.hostsAccountFreshMs;
    try {
      account = readAccount(path);
    } catch (error) {
      log.warn('hosts_account_unreadable', { error });
    }
    return account;
  };
  return {
    has: (issuer, of) => {
      const { key, signing } = current();
      return of === undefined || of === '' ? issuer === key : of === key && (issuer === key || signing.has(issuer));
    },
  };
}
