/** Messages between actors processes about hosts, and the doorbell that they ring at a host. */
import Type, { type Static } from 'typebox';
import { Capacity, type DirectoryEntry } from '../api/host.ts';
import { nullable } from '../api/nullable.ts';
import type { HostKey, Region } from '../ids.ts';
import { Beat } from './host.ts';
import { NetworkServer } from './network-server.ts';
import { id, shape } from './shapes.ts';

const number = Type.Number();
const flag = Type.Boolean();
const capacity = Type.Object(Capacity.properties);

const Entry = shape<DirectoryEntry>()(
  Type.Object({
    key: id<HostKey>(),
    region: id<Region>(),
    cordoned: flag,
    draining: flag,
    drainAtOnce: Type.Optional(number),
    capacity: nullable(capacity),
    ceiling: Type.Optional(Type.Partial(capacity)),
    lost: flag,
    fenced: Type.Optional(Type.Literal(true)),
    session: number,
    publicKey: nullable(Type.String()),
    silentMs: Type.Optional(number),
  }),
);

/**
 * Owner of a partition → every actors process: its hosts. Ordered by (epoch, revision), where
 * `revision` is the number of the last commit.
 */
export const DirectoryMessage = Type.Object({
  /** See version.ts. */
  protocol: Type.Optional(number),
  partition: number,
  epoch: number,
  revision: number,
  /** Changes of the directory since the load of this epoch, this one included. */
  changes: number,
  /** True: all hosts of the partition. False: those that changed. */
  full: flag,
  /**
   * Set on the parts of a full directory that exceeds one message; it counts when all have arrived.
   */
  part: Type.Optional(number),
  parts: Type.Optional(number),
  entries: Type.Unsafe<readonly DirectoryEntry[]>(Type.Array(Entry)),
  removed: Type.Unsafe<readonly HostKey[]>(Type.Array(id<HostKey>())),
  /**
   * In a full directory: hosts whose record is damaged. Nothing is decided about their containers.
   */
  unreadable: Type.Unsafe<readonly HostKey[]>(Type.Array(id<HostKey>())),
  /** In a full directory: which hosts serve the VPN networks of the partition. */
  servers: Type.Optional(Type.Array(NetworkServer)),
});
export type DirectoryMessage = Readonly<Static<typeof DirectoryMessage>>;

const DirectoryAt = Type.Tuple([number, number]);
/**
 * `[epoch, changes]` of a DirectoryMessage. A process that knows all changes up to it knows all
 * hosts.
 */
export type DirectoryAt = Readonly<Static<typeof DirectoryAt>>;

/**
 * The versions of directories, by partition: those of an owner, at intervals; or in a refresh those
 * that the sender has.
 */
export const DirectoryVersions = Type.Object({
  /** See version.ts. */
  protocol: Type.Optional(number),
  versions: Type.Record(Type.String({ pattern: '^\\d{1,3}$' }), DirectoryAt),
});
export type DirectoryVersions = Static<typeof DirectoryVersions>;

/**
 * Owner of partitions → every actors process: which of their hosts it heard since its last message.
 * A message that would be too long is sent as several.
 */
export const BeatsMessage = Type.Object({
  /** See version.ts. */
  protocol: Type.Optional(number),
  /** The partitions of whose hosts it tells. */
  partitions: Type.Array(number),
  /** Hosts whose heartbeats have not changed. */
  same: Type.Unsafe<readonly HostKey[]>(Type.Array(id<HostKey>())),
  beats: Type.Array(Type.Object({ host: id<HostKey>(), beat: Beat })),
});
export type BeatsMessage = Readonly<Static<typeof BeatsMessage>>;

/**
 * Names the partitions that an agent must sync, and (for the log) the request that caused the
 * change; never the desired state.
 */
export interface Doorbell {
  /** See version.ts. */
  readonly protocol?: number;
  readonly partition: number;
  readonly rid: string | null;
}
