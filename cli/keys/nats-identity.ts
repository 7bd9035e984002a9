/**
 * Who may say what on NATS, as JWTs that the server checks by itself (decentralised mode): one
 * operator, and two accounts that meet only in the exports below. `CP` holds JetStream and the
 * control plane; `HOSTS` has none, and each host in it speaks of itself only (invariant A7). Why
 * two accounts: subject permissions inside one do not protect it, for a host may ask JetStream's
 * API of its own account with a `reply` of its choice.
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
   * Credentials of a user of CP that may do everything in it, for backup, restore and an operator's
   * tools.
   */
  readonly cpCredsFile: string;
  /** Of a user of CP that may do what a gateway does. */
  readonly gatewayCredsFile: string;
  /** Of a user of CP that may do what actors do. */
  readonly actorsCredsFile: string;
  /** Credentials of a user of the system account, for actors and an operator's tools. */
  readonly sysCredsFile: string;
  /**
   * Seed of a signing key of the operator: actors sign what they change in the account HOSTS with
   * it.
   */
  readonly operatorSigningSeedFile: string;
  /** Seed of the key that signs host users. */
  readonly hostsSigningSeedFile: string;
  /** Public key of the account HOSTS; a user JWT names it, since a signing key signs for it. */
  readonly hostsAccount: string;
}

export interface NatsIdentity extends NatsIdentityFiles {
  /** What the server's configuration must hold. */
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

/** Whole or not at all: a seed cut short by a crash would lock the stack out of its own state. */
export function writePrivateFile(path: string, content: string | Uint8Array): void {
  mkdirSync(dirname(path), { recursive: true, mode: 0o700 });
  const temporary = `${path}.new-${process.pid}`;
  writeFileSync(temporary, content, { mode: 0o600 });
  renameSync(temporary, path);
}

const seedFile = (folder: string, name: string): string => join(folder, `${name}.seed`);

/** The key of an earlier start, or a new one. */
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
/**
 * A hostile host shall not use up the servers' connections, nor bring a server of its own into the
 * account.
 */
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

/** What crosses between the accounts, and which account offers it. */
const crossings = [
  // Every actors process answers a sync for its own partitions: many answers to one request.
  { from: 'CP', type: 'service', subject: 'agent.*.*.sync', responses: 'Stream' },
  { from: 'CP', type: 'service', subject: 'agent.*.*.report', responses: 'Singleton' },
  { from: 'CP', type: 'service', subject: 'agent.*.*.hello', responses: 'Singleton' },
  // The answer is JetStream's acknowledgement.
  { from: 'CP', type: 'service', subject: 'host.*.log.>', responses: 'Singleton' },
  { from: 'CP', type: 'stream', subject: 'desired.>' },
  { from: 'HOSTS', type: 'stream', subject: 'agent.*.*.beat' },
  // For agents from before 0.1.0, whose credentials do not name their key in the subjects (ADR
  // 22).
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
 * The JWT of an earlier start, as long as it says the same. One that is signed again is newer than
 * what actors have pushed since, and a server would put it in the place of that, without the
 * revocations.
 */
async function keptAccount(folder: string, name: string, key: KeyPair, claims: Partial<Account>, operator: KeyPair) {
  const path = join(folder, `${name.toLowerCase()}.jwt`);
  const made = await encodeAccount(name, key, claims, { signer: operator });
  const said = (jwt: string): string => {
    const { sub, iss, nats } = decode<Account>(jwt);
    return JSON.stringify({ sub, iss, nats });
  };
  try {
    const kept = readFileSync(path, 'utf8').trim();
    if (said(kept) === said(made)) return kept;
  } catch {
    // There is none, or it can't be read: this one takes its place.
  }
  writePrivateFile(path, made);
  return made;
}

/**
 * What a gateway does: it asks owners, and actors for what JetStream holds, and hears doorbells. It
 * has no right to ask JetStream: with any, a reply of its choice would make the server write for it
 * (ADR 18).
 */
const gatewayPermissions = (publicKey: string): Partial<User> => ({
  pub: { allow: ['part.*', 'read.*'], deny: [] },
  sub: {
    allow: [`${subjects.userInbox(publicKey)}.>`, 'changed.>', 'event.>', 'host.*.log.>', clusterSubject],
    deny: [],
  },
});

/** What agents say. */
const subjectsOfHosts = (sender: Sender<'*'>): string[] => [
  subjects.hostHello(sender),
  subjects.hostSync(sender),
  subjects.hostReport(sender),
  subjects.hostBeat(sender),
];

/**
 * What actors hear. They write all state, so a list of what they may publish would stop no thief;
 * and it would cost, since the server checks each new subject against it, and every key and every
 * answer has a subject of its own (ADR 18).
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
 * Makes the identities, or loads those that `folder` holds from an earlier start. `gateways`: names
 * of gateways that get a user of their own, in `gateway-<name>.creds`.
 */
export async function prepareNatsIdentity(folder: string, gateways: readonly string[] = []): Promise<NatsIdentity> {
  const misnamed = gateways.find((name) => !gatewayName.test(name));
  if (misnamed !== undefined) throw new Error(`${misnamed}: a name is of letters, digits and hyphens`);
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
  /** Seconds since 1970; absent: in an hour. */
  readonly expiresAtS?: number;
  /** As for an agent from before 0.1.0. */
  readonly isUnbound?: boolean;
}

/** For tests: the JWT that the control plane gives a host which enrols. */
export function mintHostUserJwt(host: HostUser): Promise<string> {
  const account = { publicKey: host.hostsAccount, signingSeed: host.hostsSigningSeed.trim() };
  const expiresAtS = host.expiresAtS ?? Math.floor(Date.now() / 1000) + 3600;
  // Branded without a check: refusing what is no host key is the signer's part.
  const { hostKey, publicKey, isUnbound = false } = host;
  return signHostJwt(account, { host: hostKey as HostKey, publicKey, expiresAtS, isUnbound });
}
