/**
 * Every bucket and stream, its contents, and its one writing role (invariant A2). The owner of a
 * partition is the actors process that the epoch in the bucket names. `gateway` writes nothing (A1;
 * its NATS user has no rights to), and hosts write only log blocks (A7).
 */
import type { ContainerId, HostKey, KeyId, MemberId, NetworkName, PeerId, TenantId } from '../ids.ts';

export const buckets = {
  cluster: {
    bucket: 'cluster',
    writer: 'actors (once, by create); a restore, while none runs, and when its history is back',
    keys: { cluster: 'cluster id, number of partitions, format version' },
  },
  members: {
    bucket: 'members',
    writer: 'the member itself; any other, once, to declare it dead',
    keys: { 'member.<id>': 'an actors process: its lease, renewed by compare-and-set, and the partitions that it has' },
  },
  state: {
    bucket: (partition: number) => `state-${partition}`,
    writer: 'owner of the partition',
    keys: {
      epoch: 'who owns the partition; every other write is fenced by the revision of this key',
      checkpoint:
        'number of the last commit whose values are in their own keys, and the journals that may have later ones',
      digest: 'count and sum of the records at the checkpoint; a load that reads others is refused',
      clock: 'time by which the partition deletes; the next owner goes on from it',
      'tenant.<tenant>': 'settings of a tenant: regions, caps, revocations',
      'container.<tenant>.<id>': 'a container, or the tombstone of one',
      'secret.<tenant>.<name>.<version>': 'a value of a secret, sealed',
      'file.<tenant>.<sha256>': 'the content of files of containers',
      'login.<tenant>.<registry>': 'a login at a registry, its password sealed; the registry in base64url',
      'key.<tenant>.<id>': 'a key of a tenant’s programs: what its token says, without the token',
      'answer.<tenant>.<key>': 'the answer to a POST with this `Idempotency-Key`, in base64url; its secrets sealed',
      'signing_key.<id>': 'in one partition: a private key that signs the cluster’s own tokens, sealed',
      'secret_floor.<tenant>': 'the highest version of the secrets and logins that were deleted',
      'host.<key>': 'a fleet host: region, capacity, cordon, session',
      'revoked_key.<public key>': 'a key of a host that was removed; the NATS servers refuse its credentials',
      'peer.<tenant>.<id>': 'a VPN peer, or the tombstone of one',
      'network.<name>': 'a VPN network: settings, certificate authority, keys of its server',
      'lease.<name>.<index>': 'an address of a network that is reserved or allocated',
      'revoked.<name>.<serial>': 'a certificate of a network that is refused',
      'events.<commit>':
        'events of commits at or below the mark that the stream EVENTS has not taken yet; at a hand-over, also those that it has just taken',
      'audit.<commit>': 'the same of lines of the audit and the stream AUDIT',
      'ops.<commit>': 'outcomes of the operations of a checkpoint, dropped by their TTL',
      'ops.<commit>.<index>': 'outcomes of operations, stored again after the store went back in time',
    },
  },
  journal: {
    bucket: (number: number) => `journal-${number}`,
    writer: 'the member; any other, once it is dead, to seal the journal and to empty it',
    keys: {
      '<member>.epoch': 'fence of a member’s journal; every put is fenced by the revision of this key',
      '<member>.entry.<slot>':
        'ring of entries with commits of all its partitions; slot = entry number mod journalSlots',
    },
  },
} as const;

/** Journals share this many buckets. Part of a cluster's storage format; never change it. */
export const journalBuckets = 4;

/**
 * A KV bucket in JetStream (NATS ADR-8): the stream that holds it, and the prefix of its keys'
 * subjects.
 */
export const bucketStream = (bucket: string): string => `KV_${bucket}`;
export const bucketPrefix = (bucket: string): string => `$KV.${bucket}.`;

export const streams = {
  logs: { name: 'LOGS', subjects: ['host.*.log.>'], writer: 'the host named in the subject' },
  events: { name: 'EVENTS', subjects: ['event.>'], writer: 'owner of the tenant’s partition (checkpointer)' },
  audit: { name: 'AUDIT', subjects: ['audit.>'], writer: 'owner of the partition that a line was committed in' },
  usage: { name: 'USAGE', subjects: ['usage.>'], writer: 'owner of the tenant’s partition, for the host named in it' },
} as const;

export const keys = {
  member: (member: MemberId) => `member.${member}`,
  epoch: 'epoch',
  checkpoint: 'checkpoint',
  digest: 'digest',
  clock: 'clock',
  /** In a journal. */
  entry: (slot: number) => `entry.${slot}`,
  anyEntry: 'entry.*',
  tenant: (tenant: TenantId) => `tenant.${tenant}`,
  container: (tenant: TenantId, id: ContainerId) => `container.${tenant}.${id}`,
  secret: (tenant: TenantId, name: string, version: number) => `secret.${tenant}.${name}.${version}`,
  file: (tenant: TenantId, sha256: string) => `file.${tenant}.${sha256}`,
  /** A registry has dots and colons, which a key of a bucket may not have in a part. */
  login: (tenant: TenantId, registry: string) => `login.${tenant}.${Buffer.from(registry).toString('base64url')}`,
  key: (tenant: TenantId, id: KeyId) => `key.${tenant}.${id}`,
  answer: (tenant: TenantId, key: string) => `answer.${tenant}.${Buffer.from(key).toString('base64url')}`,
  signingKey: (id: string) => `signing_key.${id}`,
  secretFloor: (tenant: TenantId) => `secret_floor.${tenant}`,
  host: (host: HostKey) => `host.${host}`,
  revokedKey: (publicKey: string) => `revoked_key.${publicKey}`,
  peer: (tenant: TenantId, id: PeerId) => `peer.${tenant}.${id}`,
  network: (network: NetworkName) => `network.${network}`,
  lease: (network: NetworkName, index: number) => `lease.${network}.${index}`,
  revoked: (network: NetworkName, serial: string) => `revoked.${network}.${serial}`,
  events: (commit: number) => `events.${commit}`,
  audit: (commit: number) => `audit.${commit}`,
  operations: (commit: number) => `ops.${commit}`,
} as const;
