/**
 * What the owner of a partition answers, where that is not an HTTP body of schemas/api.
 */
import type { Event } from '../api/event.ts';
import type { HostKey, Region } from '../ids.ts';
import type { CertificateRef } from '../api/network.ts';
import type { PeerProblem } from '../api/peer.ts';

/** A page of what one partition has, in the order of its keys. */
export interface KeyPage<T> {
  readonly data: readonly T[];
  readonly more: boolean;
}

/** Answer to `network.learn`: why the peer can't be as it says; null: it is. */
export interface Learned {
  readonly problem: PeerProblem | null;
}

/** Answer to `peer.count`. */
export interface PeerCount {
  readonly active: number;
  readonly disabled: number;
  readonly expired: number;
  /** Of the certificates in use of active peers, the one that ends first. */
  readonly earliest: CertificateRef['notAfterMs'] | null;
}

/**
 * Answer to `event.recent`, oldest first. What is not in it and was committed before is in the
 * stream.
 */
export interface RecentEvents {
  readonly events: readonly Event[];
  /** There are more on the side that was asked for. */
  readonly more: boolean;
  /** Number of the newest journal entry that is committed. */
  readonly last: number;
}

export interface ContainerTrace {
  readonly history: readonly HostKey[];
  readonly gone: boolean;
}

/**
 * What a host gets for its join token. The JWT is a NATS user JWT of the HOSTS account for the
 * agent's own nkey.
 */
export interface Enrolment {
  readonly host: HostKey;
  readonly region: Region;
  readonly cluster: string;
  readonly natsUrls: readonly string[];
  readonly jwt: string;
}
