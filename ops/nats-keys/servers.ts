/** The state of a folder's accounts on the NATS servers, and the connections by each key. */
import { connect, type NatsConnection } from '@nats-io/transport-node';
import Type from 'typebox';
import { messageOf } from '../../lib/error-message.ts';
import { natsServers, optionalText, readSettings } from '../../lib/config.ts';
import { decoder } from '../../lib/decode.ts';
import { claimsOf, nextClaims, revocationsOf, signingKeysOf } from '../../lib/nats/accounts/claims.ts';
import { answersOfServers, createAccounts, type Accounts } from '../../lib/nats/accounts/servers.ts';
import { credentialsFile } from '../../lib/nats/connection.ts';
import { sleep } from '../../lib/time/backoff.ts';
import { systemClock } from '../../lib/time/clock.ts';
import { limits } from '../../schemas/limits.ts';
import { wholeSeconds } from '../../schemas/quantity.ts';
import { Refused } from '../../cli/terminal/errors.ts';
import type { NatsIdentity } from './nats-identity.ts';

/** Open connections that a server names in one answer. */
const connectionsOfPage = 256;

const settings = {
  NATS_URLS: natsServers('NATS servers.', []),
  NATS_CA_FILE: optionalText('Certificate authority of the NATS servers. If set, TLS is required.'),
};

export const namesServers = (env: NodeJS.ProcessEnv): boolean => readSettings(settings, env).NATS_URLS.length > 0;

/** Calls `work` with a connection as the folder's user of the system account. */
export async function withSystem<T>(
  env: NodeJS.ProcessEnv,
  { sysCredsFile }: NatsIdentity,
  work: (system: NatsConnection) => Promise<T>,
): Promise<T> {
  const { NATS_URLS: servers, NATS_CA_FILE: tlsCaFile } = readSettings(settings, env);
  if (servers.length === 0) throw new Refused('NATS_URLS is missing: it names the NATS servers to tell');
  const dial = (): Promise<NatsConnection> =>
    connect({
      servers: [...servers],
      name: 'longshore nats-keys',
      reconnect: false,
      timeout: limits.natsConnectMs,
      authenticator: credentialsFile(sysCredsFile),
      ...(tlsCaFile === undefined ? {} : { tls: { caFile: tlsCaFile, handshakeFirst: true } }),
    });
  // Once more: a server gives a client two seconds to sign.
  const system = await dial()
    .catch(dial)
    .catch((cause: unknown) => {
      throw new Error(`cannot connect to NATS at ${servers.join(', ')} by sys.creds: ${messageOf(cause)}`, { cause });
    });
  try {
    return await work(system);
  } finally {
    await system.close();
  }
}

/** The names of the servers that hold the account as the folder says. */
async function settle(accounts: Accounts, identity: NatsIdentity, account: string): Promise<Settled> {
  const claims = claimsOf(identity.accountJwts[account]!);
  const wanted = {
    wanted: new Map(Object.entries(revocationsOf(claims))),
    keptForS: Infinity,
    most: limits.revokedKeys,
    account: { claims, issuers: new Set(identity.operatorKeys) },
  };
  for (let pushes = 0; ; pushes++) {
    const [held, stored] = await Promise.all([accounts.held(account), accounts.stored(account)]);
    const claimsHeld = [...held.claims, ...stored];
    if (claimsHeld.length === 0)
      throw new Error(`no NATS server has the account ${account}: set its resolver to type full`);
    const next = nextClaims(claimsHeld, { ...wanted, nowS: wholeSeconds(systemClock.nowMs()) });
    if (next === undefined) return { servers: held.servers, pushes };
    if (pushes === limits.revocationPushes)
      throw new Error('some NATS servers do not hold what was pushed: run the command again');
    await accounts.push(next);
  }
}

interface Settled {
  readonly servers: readonly string[];
  readonly pushes: number;
}

/**
 * Pushes the folder's accounts to the servers that lack something of them.
 * @returns the names of the servers, all of which hold the accounts then
 */
export async function pushAccounts(system: NatsConnection, identity: NatsIdentity): Promise<string[]> {
  const accounts = createAccounts(Promise.resolve(system), identity.operatorSeed);
  const servers = new Set<string>();
  /** @returns true if the account HOSTS was pushed */
  const settleAll = async (): Promise<boolean> => {
    const pushed = await Promise.all(
      Object.values(identity.accounts).map(async (account) => {
        const settled = await settle(accounts, identity, account);
        for (const server of settled.servers) servers.add(server);
        return account === identity.accounts.HOSTS && settled.pushes > 0;
      }),
    );
    return pushed.includes(true);
  };
  // Actors push that account, too: a process that has read the claims before this push may push
  // the older ones after it.
  if (await settleAll()) {
    await sleep(limits.revocationAskMs);
    await settleAll();
  }
  return [...servers].sort();
}

/** True if every server accepts what the key signs for the account HOSTS. */
export async function isAtServers(system: NatsConnection, identity: NatsIdentity, key: string): Promise<boolean> {
  const accounts = createAccounts(Promise.resolve(system), identity.operatorSeed);
  const { HOSTS } = identity.accounts;
  const [{ claims }, stored] = await Promise.all([accounts.held(HOSTS), accounts.stored(HOSTS)]);
  return [...claims, ...stored].every((each) => signingKeysOf(each).includes(key));
}

const Page = Type.Object({
  data: Type.Object({
    total: Type.Integer(),
    connections: Type.Optional(
      Type.Array(
        Type.Object({
          name: Type.Optional(Type.String()),
          authorized_user: Type.Optional(Type.String()),
          issuer_key: Type.Optional(Type.String()),
        }),
      ),
    ),
  }),
});
const decodePage = decoder(Page);

/** By public key of a user, and of what signed its JWT: the names of the open connections. */
export async function connectionsByKey(system: NatsConnection): Promise<ReadonlyMap<string, readonly string[]>> {
  const byKey = new Map<string, string[]>();
  const note = (key: string | undefined, name: string): void => {
    if (key === undefined) return;
    const names = byKey.get(key) ?? [];
    byKey.set(key, names);
    names.push(name);
  };
  let most = 0;
  for (let offset = 0; offset === 0 || offset < most; offset += connectionsOfPage) {
    const payload = JSON.stringify({ auth: true, offset, limit: connectionsOfPage });
    const asked = { subject: '$SYS.REQ.SERVER.PING.CONNZ', payload };
    for await (const { data } of answersOfServers(Promise.resolve(system), asked, decodePage)) {
      most = Math.max(most, data.total);
      for (const { name = 'without a name', authorized_user: user, issuer_key: issuer } of data.connections ?? []) {
        note(user, name);
        note(issuer, name);
      }
    }
  }
  return byKey;
}
