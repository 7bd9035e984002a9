/**
 * The permissions of every program on NATS, as JWTs that the server verifies without asking anyone
 * (decentralised mode): one operator, and two accounts connected only by the exports below. `CP`
 * holds JetStream and the control plane. `HOSTS` has no JetStream, and each host in it speaks only
 * of itself (invariant A7). A single account would not do: subject permissions do not protect
 * JetStream from a host of the same account, which may call its API with a `reply` of its choice.
 */
import { existsSync, mkdirSync, readdirSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import {
  decode,
  encodeAccount,
  encodeOperator,
  encodeUser,
  fmtCreds,
  parseCreds,
  type Account,
  type ClaimsData,
  type User,
} from '@nats-io/jwt';
import { createAccount, createOperator, createUser, type KeyPair } from '@nats-io/nkeys';
import { quickPair } from '../../lib/nats/quick-pair.ts';
import { systemClock } from '../../lib/time/clock.ts';
import { wholeSeconds } from '../../schemas/quantity.ts';
import { readIssued, validKeysOf, writeIssued, type IssuedKey } from './issued.ts';
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
import { writePrivateFile } from '../../lib/process/private-file.ts';

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
  /** Public keys of the operator by which a server accepts an account. */
  readonly operatorKeys: readonly string[];
  /** Seed of the operator's own key. */
  readonly operatorSeed: string;
  /** By name, the public key for which the folder holds credentials, or the seed to sign with. */
  readonly current: ReadonlyMap<string, string>;
  readonly issued: readonly IssuedKey[];
  /** Public keys of the accounts. */
  readonly accounts: Readonly<Record<'SYS' | 'CP' | 'HOSTS', string>>;
}

const keyNames = ['operator', 'operator-signing', 'sys', 'cp', 'hosts', 'hosts-signing'] as const;
type KeyName = (typeof keyNames)[number];

const createKey: Readonly<Record<KeyName, () => KeyPair>> = {
  operator: createOperator,
  'operator-signing': createOperator,
  sys: createAccount,
  cp: createAccount,
  hosts: createAccount,
  'hosts-signing': createAccount,
};

const encoder = new TextEncoder();

const accountFile = (folder: string, name: string): string => join(folder, `${name.toLowerCase()}.jwt`);
const seedPath = (folder: string, name: string): string => join(folder, `${name}.seed`);
export const credsPath = (folder: string, name: string): string => join(folder, `${name}.creds`);

export const hasKeys = (folder: string): boolean => existsSync(seedPath(folder, 'operator'));

/** Names of the keys that sign the users of hosts and the accounts. */
export const signingNames = ['hosts-signing', 'operator-signing'] as const;
type SigningName = (typeof signingNames)[number];
const isSigning = (name: string): name is SigningName => (signingNames as readonly string[]).includes(name);

/** The users of every cluster, beside those of gateways with a name. */
const userNames = ['cp', 'gateway', 'actors', 'sys'] as const;
const gatewayUser = /^gateway-([A-Za-z0-9][A-Za-z0-9-]{0,62})$/;

/** The file with the seed of a key that can be rotated. */
export const seedFileOf = (folder: string, name: string): string =>
  seedPath(folder, isSigning(name) ? name : `${name}-user`);

/** A new key of the kind that stands under the name. */
export const createKeyOf = (name: string): KeyPair => (isSigning(name) ? createKey[name] : createUser)();

export const seedOf = (pair: KeyPair): string => new TextDecoder().decode(pair.getSeed());

function savedKey(path: string): KeyPair | undefined {
  try {
    return quickPair(encoder.encode(readFileSync(path, 'utf8').trim()));
  } catch {
    return undefined;
  }
}

/** Reads the key that an earlier call saved, or creates and saves a new one. */
function keptKey(path: string, create: () => KeyPair): KeyPair {
  const saved = savedKey(path);
  if (saved !== undefined) return saved;
  const seed = seedOf(create());
  writePrivateFile(path, seed);
  return quickPair(encoder.encode(seed));
}

/**
 * Removes the files of keys that are revoked: signed again later, as with other permissions, their
 * credentials would be valid again.
 */
function removeRevoked(folder: string): void {
  for (const { name, key, revoked } of readIssued(folder)) {
    if (revoked === undefined || savedKey(seedFileOf(folder, name))?.getPublicKey() !== key) continue;
    rmSync(credsPath(folder, name), { force: true });
    rmSync(seedFileOf(folder, name));
  }
}

/** The claims of a saved JWT; `undefined` if the file is missing or unreadable. */
async function savedClaims<T>(path: string): Promise<ClaimsData<T> | undefined> {
  try {
    const text = readFileSync(path, 'utf8');
    return decode<T>(path.endsWith('.creds') ? (await parseCreds(encoder.encode(text))).jwt : text.trim());
  } catch {
    return undefined;
  }
}

/** The content of a JWT without the time of its signature. */
const saidBy = <T>({ sub, iss, exp, nats }: ClaimsData<T>): string => JSON.stringify({ sub, iss, exp, nats });

/**
 * Writes the JWT unless the file holds one that says the same. An account that is signed again is
 * newer than the one that actors have pushed since, which holds the revocations of hosts: servers
 * that read it from their configuration would lose them.
 * @returns the text of the file
 */
async function keptJwt<T>(path: string, jwt: string, textOf = (text: string): string => text): Promise<string> {
  const saved = await savedClaims<T>(path);
  if (saved !== undefined && saidBy(saved) === saidBy(decode<T>(jwt))) return readFileSync(path, 'utf8').trim();
  const text = textOf(jwt);
  writePrivateFile(path, text);
  return text;
}

const gatewayName = /^[A-Za-z0-9][A-Za-z0-9-]{0,62}$/;

/** Users that the folder has a key of, in the order of the help: those of gateways last. */
function usersIn(folder: string, gateways: readonly string[]): string[] {
  const seeds = readdirSync(folder).flatMap((file) => /^(gateway-.+)-user\.seed$/.exec(file)?.[1] ?? []);
  const named = new Set([...seeds, ...gateways.map((name) => `gateway-${name}`)]);
  return [...userNames, ...[...named].filter((name) => gatewayUser.test(name)).sort()];
}

/** Notes the keys that a release without `issued.json` has made, and new ones. */
async function noted(folder: string, current: ReadonlyMap<string, string>): Promise<readonly IssuedKey[]> {
  const known = readIssued(folder);
  const added: IssuedKey[] = [];
  for (const [name, key] of current) {
    if (known.some((each) => each.key === key)) continue;
    const saved = await savedClaims(isSigning(name) ? accountFile(folder, 'SYS') : credsPath(folder, name));
    const isOfKey = saved !== undefined && (isSigning(name) || saved.sub === key);
    added.push({ name, key, iat: isOfKey ? saved.iat : wholeSeconds(systemClock.nowMs()) });
  }
  if (added.length === 0) return known;
  const all = [...known, ...added];
  writeIssued(folder, all);
  return all;
}

const revocationsOf = (issued: readonly IssuedKey[], isOfAccount: (name: string) => boolean): Partial<Account> => {
  const revoked = issued.flatMap(({ name, key, revoked: atS }) =>
    atS !== undefined && !isSigning(name) && isOfAccount(name) ? [[key, atS] as const] : [],
  );
  return revoked.length === 0 ? {} : { revocations: Object.fromEntries(revoked) };
};

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
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  removeRevoked(folder);
  const keys = Object.fromEntries(
    keyNames.map((name) => [name, keptKey(seedPath(folder, name), createKey[name])]),
  ) as Record<KeyName, KeyPair>;
  const users = usersIn(folder, gateways).map((name) => [name, keptKey(seedFileOf(folder, name), createUser)] as const);
  const current = new Map(
    [...users, ...signingNames.map((name) => [name, keys[name]] as const)].map(([name, pair]) => [
      name,
      pair.getPublicKey(),
    ]),
  );
  const issued = await noted(folder, current);
  const signingKeysOf = (name: SigningName): string[] => validKeysOf(issued, name).map(({ key }) => key);
  const publicKeyOf = (name: AccountName): string => ({ CP: keys.cp, HOSTS: keys.hosts })[name].getPublicKey();
  const account = async (name: string, key: KeyPair, claims: Partial<Account>): Promise<string> =>
    keptJwt<Account>(accountFile(folder, name), await encodeAccount(name, key, claims, { signer: keys.operator }));

  const operatorJwt = await encodeOperator('longshore', keys.operator, {
    system_account: keys.sys.getPublicKey(),
    signing_keys: signingKeysOf('operator-signing'),
  });
  const jwts = {
    SYS: await account('SYS', keys.sys, {
      limits: accountLimits,
      ...revocationsOf(issued, (name) => name === 'sys'),
    }),
    CP: await account('CP', keys.cp, {
      limits: { ...accountLimits, ...jetStreamLimits },
      exports: exportsOf('CP'),
      imports: importsOf('CP', publicKeyOf),
      ...revocationsOf(issued, (name) => name !== 'sys'),
    }),
    HOSTS: await account('HOSTS', keys.hosts, {
      limits: hostsLimits,
      exports: exportsOf('HOSTS'),
      imports: importsOf('HOSTS', publicKeyOf),
      signing_keys: signingKeysOf('hosts-signing'),
    }),
  };
  const permissionsOf = (name: string, publicKey: string): Partial<User> =>
    name === 'sys'
      ? {}
      : name === 'cp'
        ? backupPermissions
        : name === 'actors'
          ? actorsPermissions(publicKey)
          : gatewayPermissions(publicKey);
  for (const [name, user] of users) {
    const key = user.getPublicKey();
    const exp = issued.find((each) => each.key === key)?.exp;
    const issuer = name === 'sys' ? keys.sys : keys.cp;
    const options = exp === undefined ? {} : { exp };
    const jwt = await encodeUser(name, user, issuer, permissionsOf(name, key), options);
    await keptJwt<User>(credsPath(folder, name), jwt, (text) => new TextDecoder().decode(fmtCreds(text, user)));
  }
  const accounts = {
    SYS: keys.sys.getPublicKey(),
    CP: keys.cp.getPublicKey(),
    HOSTS: keys.hosts.getPublicKey(),
  };
  return {
    operatorJwt,
    systemAccount: accounts.SYS,
    accountJwts: { [accounts.SYS]: jwts.SYS, [accounts.CP]: jwts.CP, [accounts.HOSTS]: jwts.HOSTS },
    accounts,
    operatorKeys: [keys.operator.getPublicKey(), ...signingKeysOf('operator-signing')],
    operatorSeed: seedOf(keys.operator),
    current,
    issued,
    cpCredsFile: credsPath(folder, 'cp'),
    gatewayCredsFile: credsPath(folder, 'gateway'),
    actorsCredsFile: credsPath(folder, 'actors'),
    sysCredsFile: credsPath(folder, 'sys'),
    operatorSigningSeedFile: seedPath(folder, 'operator-signing'),
    hostsSigningSeedFile: seedPath(folder, 'hosts-signing'),
    hostsAccount: accounts.HOSTS,
    hostsAccountFile: accountFile(folder, 'HOSTS'),
  };
}
