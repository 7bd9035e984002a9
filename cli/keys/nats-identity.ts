/**
 * The permissions of every program on NATS, as JWTs that the server verifies without asking anyone
 * (decentralised mode): one operator, and two accounts connected only by the exports below. `CP`
 * holds JetStream and the control plane. `HOSTS` has no JetStream, and each host in it speaks only
 * of itself (invariant A7). A single account would not do: subject permissions do not protect
 * JetStream from a host of the same account, which may call its API with a `reply` of its choice.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { decode, encodeAccount, encodeOperator, encodeUser, fmtCreds, type Account, type User } from '@nats-io/jwt';
import { createAccount, createOperator, createUser, type KeyPair } from '@nats-io/nkeys';
import { quickPair } from '../../lib/nats/quick-pair.ts';
import {
  accountLimits,
  actorsPermissions,
  backupPermissions,
  exportsOf,
  gatewayPermissions,
  hostsLimits,
  importsOf,
  jetStreamLimits,
  type AccountName,
} from './permissions.ts';
import { writePrivateFile } from './private-file.ts';

export interface NatsIdentityFiles {
  /**
   * Credentials of a user of the account CP for backup, restore and an operator's tools: it may do
   * everything there but speak for hosts and in sessions.
   */
  readonly cpCredsFile: string;
  /** Credentials of a user of CP with the permissions of a gateway. */
  readonly gatewayCredsFile: string;
  /** Credentials of a user of CP with the permissions of an actors process. */
  readonly actorsCredsFile: string;
  /** Credentials of a user of the system account, for actors and an operator's tools. */
  readonly sysCredsFile: string;
  /** Seed of the operator's signing key, with which actors sign changes to the account HOSTS. */
  readonly operatorSigningSeedFile: string;
  /** Seed of the key with which actors sign the users of hosts. */
  readonly hostsSigningSeedFile: string;
  /**
   * Public key of the account HOSTS. The JWT of a host's user names it, because a signing key of
   * the account signs the JWT in its place.
   */
  readonly hostsAccount: string;
  /** The JWT of that account, by which gateways know the agents of hosts. It is public. */
  readonly hostsAccountFile: string;
}

/** The identities, with what goes into the configuration of the NATS servers. */
export interface NatsIdentity extends NatsIdentityFiles {
  readonly operatorJwt: string;
  readonly systemAccount: string;
  readonly accountJwts: Readonly<Record<string, string>>;
}

const keyNames = [
  'operator',
  'operator-signing',
  'sys',
  'cp',
  'hosts',
  'hosts-signing',
  'cp-user',
  'gateway-user',
  'actors-user',
  'sys-user',
] as const;
type KeyName = (typeof keyNames)[number];

const createKey: Readonly<Record<KeyName, () => KeyPair>> = {
  operator: createOperator,
  'operator-signing': createOperator,
  sys: createAccount,
  cp: createAccount,
  hosts: createAccount,
  'hosts-signing': createAccount,
  'cp-user': createUser,
  'gateway-user': createUser,
  'actors-user': createUser,
  'sys-user': createUser,
};

const encoder = new TextEncoder();

const accountFile = (folder: string, name: string): string => join(folder, `${name.toLowerCase()}.jwt`);
const seedFile = (folder: string, name: string): string => join(folder, `${name}.seed`);

/** Reads the key that an earlier call saved, or creates and saves a new one. */
function keptKey(folder: string, name: string, create: () => KeyPair): KeyPair {
  const path = seedFile(folder, name);
  let seed: string;
  try {
    seed = readFileSync(path, 'utf8').trim();
  } catch {
    seed = new TextDecoder().decode(create().getSeed());
    writePrivateFile(path, seed);
  }
  return quickPair(encoder.encode(seed));
}

/**
 * Returns the saved JWT of the account if its claims are still the wanted ones, and signs a new one
 * otherwise. A JWT that is signed again is newer than the one that actors have pushed since, which
 * holds the revocations: servers would replace that one and lose them.
 */
async function keptAccount(folder: string, name: string, key: KeyPair, claims: Partial<Account>, operator: KeyPair) {
  const path = accountFile(folder, name);
  const made = await encodeAccount(name, key, claims, { signer: operator });
  const claimsOf = (jwt: string): string => {
    const { sub, iss, nats } = decode<Account>(jwt);
    return JSON.stringify({ sub, iss, nats });
  };
  try {
    const kept = readFileSync(path, 'utf8').trim();
    if (claimsOf(kept) === claimsOf(made)) return kept;
  } catch {
    // The saved JWT is missing or unreadable: write the new one.
  }
  writePrivateFile(path, made);
  return made;
}

const gatewayName = /^[A-Za-z0-9][A-Za-z0-9-]{0,62}$/;

/**
 * Creates the identities in `folder`, or loads those that it already holds.
 * @param gateways names of gateways that get their own user, in `gateway-<name>.creds`
 */
export async function prepareNatsIdentity(folder: string, gateways: readonly string[] = []): Promise<NatsIdentity> {
  const misnamed = gateways.find((name) => !gatewayName.test(name));
  if (misnamed !== undefined)
    throw new Error(
      `gateway name ${JSON.stringify(misnamed)}: use 1 to 63 letters, digits and hyphens, no hyphen first`,
    );
  const keys = Object.fromEntries(keyNames.map((name) => [name, keptKey(folder, name, createKey[name])])) as Record<
    KeyName,
    KeyPair
  >;
  const publicKeyOf = (name: AccountName): string => ({ CP: keys.cp, HOSTS: keys.hosts })[name].getPublicKey();
  const account = (name: string, key: KeyPair, claims: Partial<Account>): Promise<string> =>
    keptAccount(folder, name, key, claims, keys.operator);

  const operatorJwt = await encodeOperator('longshore', keys.operator, {
    system_account: keys.sys.getPublicKey(),
    signing_keys: [keys['operator-signing'].getPublicKey()],
  });
  const jwts = {
    SYS: await account('SYS', keys.sys, { limits: accountLimits }),
    CP: await account('CP', keys.cp, {
      limits: { ...accountLimits, ...jetStreamLimits },
      exports: exportsOf('CP'),
      imports: importsOf('CP', publicKeyOf),
    }),
    HOSTS: await account('HOSTS', keys.hosts, {
      limits: hostsLimits,
      exports: exportsOf('HOSTS'),
      imports: importsOf('HOSTS', publicKeyOf),
      signing_keys: [keys['hosts-signing'].getPublicKey()],
    }),
  };
  const writeCreds = async (
    name: string,
    user: KeyPair,
    issuer: KeyPair,
    permissions: Partial<User> = {},
  ): Promise<string> => {
    const path = join(folder, `${name}.creds`);
    writePrivateFile(path, fmtCreds(await encodeUser(name, user, issuer, permissions), user));
    return path;
  };
  const writeGateway = (name: string, user: KeyPair): Promise<string> =>
    writeCreds(name, user, keys.cp, gatewayPermissions(user.getPublicKey()));
  for (const name of gateways)
    await writeGateway(`gateway-${name}`, keptKey(folder, `gateway-${name}-user`, createUser));
  const actorsUser = keys['actors-user'];
  return {
    operatorJwt,
    systemAccount: keys.sys.getPublicKey(),
    accountJwts: {
      [keys.sys.getPublicKey()]: jwts.SYS,
      [keys.cp.getPublicKey()]: jwts.CP,
      [keys.hosts.getPublicKey()]: jwts.HOSTS,
    },
    cpCredsFile: await writeCreds('cp', keys['cp-user'], keys.cp, backupPermissions),
    gatewayCredsFile: await writeGateway('gateway', keys['gateway-user']),
    actorsCredsFile: await writeCreds('actors', actorsUser, keys.cp, actorsPermissions(actorsUser.getPublicKey())),
    sysCredsFile: await writeCreds('sys', keys['sys-user'], keys.sys),
    operatorSigningSeedFile: seedFile(folder, 'operator-signing'),
    hostsSigningSeedFile: seedFile(folder, 'hosts-signing'),
    hostsAccount: keys.hosts.getPublicKey(),
    hostsAccountFile: accountFile(folder, 'HOSTS'),
  };
}
