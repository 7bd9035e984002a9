/**
 * Every NATS subject. Ids have fixed positions, so that an account's permissions can hold a host to
 * its own (invariant A7): a host may publish `agent.<its key>.<its user key>.>` and its log lines,
 * and subscribe to `desired.<its key>.>` and its own inbox.
 */
import type { ContainerId, HostKey, TenantId } from '../ids.ts';

/** FNV-1a, 32 bit. */
export function hashOf(key: string): number {
  let hash = 0x811c9dc5;
  for (let index = 0; index < key.length; index++) {
    hash ^= key.charCodeAt(index);
    hash = Math.imul(hash, 0x01000193);
  }
  return hash >>> 0;
}

/** The partition that a key belongs to. Part of a cluster's storage format; never change it. */
export const partitionOf = (key: string, partitions: number): number => hashOf(key) % partitions;

/**
 * The stores of JetStream that a gateway may read, always through actors: streams, the subjects
 * that one of them has, and the cluster's record.
 */
export const readable = ['logs', 'events', 'audit', 'usage', 'usage_subjects', 'cluster'] as const;
export type Readable = (typeof readable)[number];
export type ReadableStream = Exclude<Readable, 'usage_subjects' | 'cluster'>;

/**
 * Prefix of the inboxes of clients of the account CP. Each NATS user has a prefix of its own below
 * it.
 */
const inboxes = '_INBOX.';

/**
 * True if an answer may go to this subject. A client may name any reply subject, even one that it
 * may not publish to, such as the key of a bucket; the answer would then be written there in its
 * place.
 */
export const isInbox = (reply: string | undefined): reply is string => reply?.startsWith(inboxes) === true;

/**
 * The user of the account CP whose inboxes have this prefix; `undefined` if it is none of theirs.
 */
export const userOfInbox = (prefix: string): string | undefined =>
  isInbox(prefix) ? prefix.slice(inboxes.length) : undefined;

/** Sender that speaks for a host. The NATS server holds each agent to its credentials. */
export interface Sender<Host = HostKey> {
  readonly host: Host;
  /** The public nkey of the agent's NATS user. */
  readonly user: string;
}

/** Place of a message in the stream USAGE. */
export interface UsagePlace {
  readonly tenant: TenantId;
  readonly day: string;
  readonly host: HostKey;
  readonly source: string;
  readonly part: number;
}

const prefixOf = ({ host, user }: Sender<HostKey | '*'>): string => `agent.${host}.${user}`;

/** For the subjects of all agents. */
export const anySender: Sender<'*'> = { host: '*', user: '*' };

export const subjects = {
  /** Gateway → owner of a partition: a batch of asks, answered in one or more parts. */
  partition: (partition: number) => `part.${partition}`,
  /** The same to one actors process, for any of its partitions. Its answers say its token. */
  owner: (process: string) => `owner.${process}`,

  /** Gateway → any actors process: a read of a stream, which it forwards to JetStream. */
  read: (what: Readable) => `read.${what}`,

  /**
   * Any actors process → all of them: what a member says now, and look at the partitions again. May
   * be lost. Without content: read all members.
   */
  membersChanged: 'members.changed',

  /** Published after a commit that a `wait` may be waiting for; no content. */
  changed: (tenant: TenantId, id: ContainerId) => `changed.${tenant}.${id}`,
  changedOfTenant: (tenant: TenantId) => `changed.${tenant}.*`,

  /** Owner of a host's partition → every actors process: its hosts (DirectoryMessage). */
  directory: 'directory.hosts',
  /**
   * Any actors process → all of them: send the hosts of which it has older versions than these
   * (DirectoryVersions).
   */
  directoryRefresh: 'directory.refresh',
  /** Owner of partitions → every actors process: its versions of them (DirectoryVersions). */
  directoryVersions: 'directory.versions',
  /** Owner of partitions → every actors process: heartbeats of their hosts (BeatsMessage). */
  directoryBeats: 'directory.beats',

  /** Doorbell, actor → agent. Its content does not matter, and it may be lost. */
  desired: (host: HostKey, partition: number) => `desired.${host}.${partition}`,
  desiredOfHost: (host: HostKey) => `desired.${host}.*`,

  hostHello: (sender: Sender<HostKey | '*'>) => `${prefixOf(sender)}.hello`,
  hostSync: (sender: Sender<HostKey | '*'>) => `${prefixOf(sender)}.sync`,
  hostReport: (sender: Sender<HostKey | '*'>) => `${prefixOf(sender)}.report`,
  hostBeat: (sender: Sender<HostKey | '*'>) => `${prefixOf(sender)}.beat`,
  hostUsage: (sender: Sender<HostKey | '*'>) => `${prefixOf(sender)}.usage`,
  hostUnseal: (sender: Sender<HostKey | '*'>) => `${prefixOf(sender)}.unseal`,
  /** Agent → the gateway that has just rung: what is the session about? */
  hostSession: (sender: Sender<HostKey | '*'>) => `${prefixOf(sender)}.session`,
  /**
   * Gateway → agent: a doorbell without content, and then what the gateway sends into the tunnel of
   * the session. Nobody else knows the last token.
   */
  session: (agent: Sender, session: string) => `session.${agent.host}.${agent.user}.${session}`,
  sessionsOfHost: (agent: Sender) => `session.${agent.host}.${agent.user}.*`,
  /** Agent → the gateway with this token: what the agent sends into the tunnel. */
  tunnel: (gateway: string, agent: Sender, session: string) =>
    `tunnel.${gateway}.${agent.host}.${agent.user}.${session}`,
  tunnelsOfHost: (agent: Sender) => `tunnel.*.${agent.host}.${agent.user}.*`,
  hostLog: (host: HostKey | '*', tenant: TenantId, id: ContainerId) => `host.${host}.log.${tenant}.${id}`,
  /**
   * Prefix of the inbox of an agent. It contains the agent's key, so that holders of earlier keys
   * of the host hear nothing.
   */
  hostInbox: ({ user }: Pick<Sender, 'user'>) => `_INBOX_${user}`,
  /** Prefix of the inbox of a user of the account CP, by its public key. */
  userInbox: (publicKey: string) => `${inboxes}${publicKey}`,

  event: (tenant: TenantId, id: ContainerId) => `event.${tenant}.${id}`,
  eventsOfTenant: (tenant: TenantId) => `event.${tenant}.>`,
  allEvents: 'event.>',

  /** Lines that concern a tenant, and those that concern operators alone. */
  auditOfTenant: (tenant: TenantId) => `audit.tenant.${tenant}`,
  auditOfOperators: 'audit.operators',
  allAudit: 'audit.>',

  /** `day`: `2026-11-24`, UTC. `source`: the state folder of the agent (usage.ts). */
  usage: ({ tenant, day, host, source, part }: UsagePlace) => `usage.${tenant}.${day}.${host}.${source}.${part}`,
  usageOfDay: (tenant: TenantId | '*', day: string) => `usage.${tenant}.${day}.>`,
} as const;

const secondToken = (subject: string): string => {
  const from = subject.indexOf('.') + 1;
  return subject.slice(from, subject.indexOf('.', from));
};

/** The tenant of `event.<tenant>.<id>`. */
export const tenantOfEventSubject = (subject: string): TenantId => secondToken(subject) as TenantId;
/** The tenant of `usage.<tenant>.<day>…`. */
export const tenantOfUsageSubject = (subject: string): TenantId => secondToken(subject) as TenantId;

/** Sender of a message on `agent.<host>.<user>.<verb>`. The host key is not checked here. */
export function senderOfSubject(subject: string): Sender<string> {
  const [, host = '', user = ''] = subject.split('.', 3);
  return { host, user };
}
