/**
 * The permissions of every program on NATS, as JWTs that the server verifies without asking anyone
 * (decentralised mode): one operator, and two accounts connected only by the exports below. `CP`
 * holds JetStream and the control plane. `HOSTS` has no JetStream, and each host in it speaks only
 * of itself (invariant A7). A single account would not do: subject permissions do not protect
 * JetStream from a host of the same account, which may call its API with a `reply` of its choice.
 */
import { mkdirSync, readFileSync, renameSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import {
  decode,
  encodeAccount,
  encodeOperator,
  encodeUser,
  fmtCreds,
  type Account,
  type Export,
  type Import,
  type OperatorLimits,
  type User,
} from '@nats-io/jwt';
import { clusterSubject } from '../../lib/nats/cluster-record.ts';
import { signHostJwt } from '../../lib/nats/host-credentials.ts';
import type { HostKey } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { anySender, anyUnboundSender, subjects, type Sender } from '../../schemas/wire/subjects.ts';
import { createAccount, createOperator, createUser, fromSeed, type KeyPair } from '@nats-io/nkeys';

export interface NatsIdentityFiles {
  /**
   * Credentials of a user that may do everything in the account CP: for backup, restore and an
   * operator's tools.
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
   * Public key of the account HOSTS. The JWT of a host's user names it, because a signing key of the
   * account signs the JWT in its place.
   */
  readonly hostsAccount: string;
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

/**
 * Writes a file atomically: a seed that a crash cut short would lock the stack out of its own state.
 */
export function writePrivateFile(path: string, content: string | Uint8Array): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const temporary = `${path}.new-${process.pid}`;
  writeFileSync(temporary, content, { mode: 0o600 });
  renameSync(temporary, path);
}

const seedFile = (folder: string, name: string): string => join(folder, `${name}.seed`);

/** Reads the key that an earlier call saved, or creates and saves a new one. */
function keptKey(folder: string, name: string, create: () => KeyPair): KeyPair {
  const path = seedFile(folder, name);
  let seed: string;
  try {
    seed = readFileSync(path, 'utf8').trim();
  } catch {
    const made = create();
    writePrivateFile(path, new TextDecoder().decode(made.getSeed()));
    return made;
  }
  return fromSeed(encoder.encode(seed));
}

const unlimited = -1;
const accountLimits: OperatorLimits = {
  subs: unlimited,
  data: unlimited,
  payload: unlimited,
  imports: unlimited,
  exports: unlimited,
  wildcards: true,
  conn: unlimited,
  leaf: unlimited,
};
/** A hostile host can neither exhaust the servers' connections nor attach a leaf node. */
const hostsLimits: OperatorLimits = { ...accountLimits, conn: limits.hostConnections, leaf: 0 };
const jetStreamLimits: OperatorLimits = {
  mem_storage: unlimited,
  disk_storage: unlimited,
  streams: unlimited,
  consumer: unlimited,
  mem_max_stream_bytes: unlimited,
  disk_max_stream_bytes: unlimited,
  max_ack_pending: unlimited,
};

/** The subjects that cross between the accounts; `from` is the account that exports them. */
const crossings = [
  // Every actors process answers for its own partitions, so one request gets several answers.
  { from: 'CP', type: 'service', subject: 'agent.*.*.sync', responses: 'Stream' },
  { from: 'CP', type: 'service', subject: 'agent.*.*.report', responses: 'Singleton' },
  { from: 'CP', type: 'service', subject: 'agent.*.*.hello', responses: 'Singleton' },
  // JetStream acknowledges each block of log lines.
  { from: 'CP', type: 'service', subject: 'host.*.log.>', responses: 'Singleton' },
  { from: 'CP', type: 'stream', subject: 'desired.>' },
  { from: 'HOSTS', type: 'stream', subject: 'agent.*.*.beat' },
  // For agents older than 0.1.0, whose subjects do not name the agent's key (ADR 22).
  { from: 'CP', type: 'service', subject: 'host.*.sync', responses: 'Stream' },
  { from: 'CP', type: 'service', subject: 'host.*.report', responses: 'Singleton' },
  { from: 'CP', type: 'service', subject: 'host.*.hello', responses: 'Singleton' },
  { from: 'HOSTS', type: 'stream', subject: 'host.*.beat' },
] as const;

type AccountName = (typeof crossings)[number]['from'];

const exportsOf = (account: AccountName): Export[] =>
  crossings
    .filter(({ from }) => from === account)
    .map((crossing) => ({
      name: crossing.subject,
      subject: crossing.subject,
      type: crossing.type,
      ...(crossing.type === 'service' ? { response_type: crossing.responses } : {}),
    }));

const importsOf = (account: AccountName, keyOf: (name: AccountName) => KeyPair): Import[] =>
  crossings
    .filter(({ from }) => from !== account)
    .map(({ from, subject, type }) => ({
      name: subject,
      subject,
      type,
      account: keyOf(from).getPublicKey(),
      ...(type === 'service' ? { local_subject: subject } : {}),
    }));

/**
 * Returns the saved JWT of the account if its claims are still the wanted ones, and signs a new one
 * otherwise. A JWT that is signed again is newer than the one that actors have pushed since, which
 * holds the revocations: servers would replace that one and lose them.
 */
async function keptAccount(folder: string, name: string, key: KeyPair, claims: Partial<Account>, operator: KeyPair) {
  const path = join(folder, `${name.toLowerCase()}.jwt`);
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

/**
 * A gateway asks owners of partitions, asks actors for what JetStream stores, and hears doorbells.
 * It may not call JetStream: with a reply subject of its choice it could make the server write on
 * its behalf (ADR 18).
 */
const gatewayPermissions = (publicKey: string): Partial<User> => ({
  pub: { allow: ['part.*', 'read.*'], deny: [] },
  sub: {
    allow: [`${subjects.userInbox(publicKey)}.>`, 'changed.>', 'event.>', 'host.*.log.>', clusterSubject],
    deny: [],
  },
});

/** The subjects on which agents send. */
const subjectsOfHosts = (sender: Sender<'*'>): string[] => [
  subjects.hostHello(sender),
  subjects.hostSync(sender),
  subjects.hostReport(sender),
  subjects.hostBeat(sender),
];

/**
 * Limits what actors may subscribe to, not what they may publish. Actors write all state, so a list
 * for publishing would not stop a thief of their credentials. It would also cost time: the server
 * checks each new subject against the list, and every key and answer has its own subject (ADR 18).
 */
const actorsPermissions = (publicKey: string): Partial<User> => ({
  sub: {
    allow: [
      `${subjects.userInbox(publicKey)}.>`,
      'part.*',
      'read.*',
      'members.changed',
      'directory.*',
      ...[anySender, anyUnboundSender].flatMap(subjectsOfHosts),
    ],
    deny: [],
  },
});

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
  const keyOf = (name: AccountName): KeyPair => ({ CP: keys.cp, HOSTS: keys.hosts })[name];
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
      imports: importsOf('CP', keyOf),
    }),
    HOSTS: await account('HOSTS', keys.hosts, {
      limits: hostsLimits,
      exports: exportsOf('HOSTS'),
      imports: importsOf('HOSTS', keyOf),
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
    cpCredsFile: await writeCreds('cp', keys['cp-user'], keys.cp),
    gatewayCredsFile: await writeGateway('gateway', keys['gateway-user']),
    actorsCredsFile: await writeCreds('actors', actorsUser, keys.cp, actorsPermissions(actorsUser.getPublicKey())),
    sysCredsFile: await writeCreds('sys', keys['sys-user'], keys.sys),
    operatorSigningSeedFile: seedFile(folder, 'operator-signing'),
    hostsSigningSeedFile: seedFile(folder, 'hosts-signing'),
    hostsAccount: keys.hosts.getPublicKey(),
  };
}

export interface HostUser {
  readonly hostKey: string;
  /** The host's own public user key (`U...`); its seed never leaves the host. */
  readonly publicKey: string;
  readonly hostsAccount: string;
  readonly hostsSigningSeed: string;
  /** Seconds since 1970; default: one hour from now. */
  readonly expiresAtS?: number;
  /** Grants the subjects of an agent older than 0.1.0, which do not name its key. */
  readonly isUnbound?: boolean;
}

/** For tests: the JWT that the control plane gives to a host at enrolment. */
export function mintHostUserJwt(host: HostUser): Promise<string> {
  const account = { publicKey: host.hostsAccount, signingSeed: host.hostsSigningSeed.trim() };
  const expiresAtS = host.expiresAtS ?? Math.floor(Date.now() / 1000) + 3600;
  // Not validated here: the signer refuses an invalid host key.
  const { hostKey, publicKey, isUnbound = false } = host;
  return signHostJwt(account, { host: hostKey as HostKey, publicKey, expiresAtS, isUnbound });
}
