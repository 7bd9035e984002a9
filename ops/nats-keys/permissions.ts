/**
 * Permissions of the accounts and of each program's users on NATS, as claims of their JWTs
 * (nats-identity.ts signs them).
 */
import type { Export, Import, OperatorLimits, User } from '@nats-io/jwt';
import { clusterSubject } from '../../lib/nats/cluster-record.ts';
import { anySender, subjects } from '../../schemas/wire/subjects.ts';

/**
 * Connections of all hosts together: by default a server accepts 65,536, and the control plane
 * needs some of them.
 */
const hostConnections = 32_768;
/** Time after a request of a host in which a gateway may answer it. */
const answerTtlMs = 15_000;

const unlimited = -1;
const nanosecondsOfMs = 1_000_000;
export const accountLimits: OperatorLimits = {
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
export const hostsLimits: OperatorLimits = { ...accountLimits, conn: hostConnections, leaf: 0 };
export const jetStreamLimits: OperatorLimits = {
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
  // Gateways answer it.
  { from: 'CP', type: 'service', subject: 'agent.*.*.unseal', responses: 'Singleton' },
  { from: 'CP', type: 'service', subject: 'agent.*.*.usage', responses: 'Singleton' },
  // JetStream acknowledges each block of log lines.
  { from: 'CP', type: 'service', subject: 'host.*.log.>', responses: 'Singleton' },
  { from: 'CP', type: 'service', subject: 'agent.*.*.session', responses: 'Singleton' },
  /**
   * A service and no stream, because the server replaces the reply subject of what crosses as one:
   * a gateway may answer what it hears, so a host must not choose where (ADR 39).
   */
  { from: 'CP', type: 'service', subject: 'tunnel.*.*.*.*', responses: 'Singleton' },
  { from: 'CP', type: 'stream', subject: 'desired.>' },
  { from: 'CP', type: 'stream', subject: 'session.*.*.*' },
  { from: 'HOSTS', type: 'stream', subject: 'agent.*.*.beat' },
] as const;

export type AccountName = (typeof crossings)[number]['from'];

export const exportsOf = (account: AccountName): Export[] =>
  crossings
    .filter(({ from }) => from === account)
    .map((crossing) => ({
      name: crossing.subject,
      subject: crossing.subject,
      type: crossing.type,
      ...(crossing.type === 'service' ? { response_type: crossing.responses } : {}),
    }));

export const importsOf = (account: AccountName, publicKeyOf: (name: AccountName) => string): Import[] =>
  crossings
    .filter(({ from }) => from !== account)
    .map(({ from, subject, type }) => ({
      name: subject,
      subject,
      type,
      account: publicKeyOf(from),
      ...(type === 'service' ? { local_subject: subject } : {}),
    }));

/**
 * A gateway asks owners of partitions, asks actors for what JetStream stores, and hears doorbells.
 * It may not call JetStream: with a reply subject of its choice it could make the server write on
 * its behalf (ADR 18). It may answer hosts, each ask once: what they ask crosses accounts, where
 * the server itself names the subject of the answer (ADR 37, ADR 39).
 */
export const gatewayPermissions = (publicKey: string): Partial<User> => ({
  pub: { allow: ['part.*', 'owner.*', 'read.*', 'session.*.*.*'], deny: [] },
  sub: {
    allow: [
      `${subjects.userInbox(publicKey)}.>`,
      'changed.>',
      'event.>',
      'host.*.log.>',
      clusterSubject,
      subjects.hostSession(anySender),
      subjects.hostUnseal(anySender),
      `tunnel.${publicKey}.*.*.*`,
    ],
    deny: [],
  },
  resp: { max: 1, ttl: answerTtlMs * nanosecondsOfMs },
});

/** The subjects on which agents send. */
const subjectsOfHosts = [
  subjects.hostHello(anySender),
  subjects.hostSync(anySender),
  subjects.hostReport(anySender),
  subjects.hostBeat(anySender),
  subjects.hostUsage(anySender),
];

/**
 * Subjects between hosts and gateways alone: asks for sealed values, and sessions. Others may
 * neither speak nor listen there. The permissions alone do not stop a thief who may ask JetStream,
 * which would publish in the thief's place: asks for values are signed, too (ADR 37).
 */
const betweenHostsAndGateways = [
  subjects.hostUnseal(anySender),
  subjects.hostSession(anySender),
  'session.*.*.*',
  'tunnel.*.*.*.*',
];

/**
 * Limits what actors may subscribe to, and refuses them only a few subjects to publish to. Actors
 * write all state, so a list of what they may publish would not stop a thief of their credentials
 * (ADR 18).
 */
export const actorsPermissions = (publicKey: string): Partial<User> => ({
  pub: { deny: betweenHostsAndGateways },
  sub: {
    allow: [
      `${subjects.userInbox(publicKey)}.>`,
      'part.*',
      'owner.*',
      'read.*',
      'members.changed',
      'directory.*',
      ...subjectsOfHosts,
    ],
    deny: [],
  },
});

/** Backups, restores and an operator's tools may do everything else in the account CP. */
export const backupPermissions: Partial<User> = {
  pub: { deny: betweenHostsAndGateways },
  sub: { deny: betweenHostsAndGateways },
};
