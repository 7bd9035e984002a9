/** The stored records of a partition, and the key of each. */
import type { ContainerRecord, TombstoneRecord } from '../../schemas/api/container.ts';
import type { HostRecord, RevokedKeyRecord } from '../../schemas/api/host.ts';
import type { LeaseRecord, NetworkRecord, RevokedRecord } from '../../schemas/api/network.ts';
import type { PeerRecord, PeerTombstoneRecord } from '../../schemas/api/peer.ts';
import type { FileRecord } from '../../schemas/api/fields/files-part.ts';
import type { LoginRecord, SecretFloorRecord, SecretRecord } from '../../schemas/api/secret.ts';
import type { KeyRecord } from '../../schemas/api/keys/key.ts';
import type { SigningKeyRecord } from '../../schemas/api/keys/signing-key.ts';
import type { TenantRecord } from '../../schemas/api/tenant.ts';
import type { AnswerRecord } from '../../schemas/records/kept-answer.ts';
import { keys } from '../../schemas/records/buckets.ts';

export type VpnRecord = PeerRecord | PeerTombstoneRecord | NetworkRecord | LeaseRecord | RevokedRecord;

export const vpnRecordKey = (record: VpnRecord): string => {
  switch (record.kind) {
    case 'peer':
    case 'peer_tombstone':
      return keys.peer(record.tenant, record.id);
    case 'network':
      return keys.network(record.name);
    case 'lease':
      return keys.lease(record.network, record.index);
    case 'revoked':
      return keys.revoked(record.network, record.serial);
  }
};

const networkKinds = ['network', 'lease', 'revoked'] as const;
export type NetworkKind = (typeof networkKinds)[number];

/** `true` if a key of this kind is about a network, whose name is then the second part. */
export const isOfNetwork = (kind: string | undefined): kind is NetworkKind =>
  networkKinds.some((known) => known === kind);

export type StateRecord =
  | ContainerRecord
  | TombstoneRecord
  | TenantRecord
  | SecretRecord
  | SecretFloorRecord
  | LoginRecord
  | FileRecord
  | KeyRecord
  | SigningKeyRecord
  | AnswerRecord
  | HostRecord
  | RevokedKeyRecord
  | VpnRecord;

export const recordKey = (record: StateRecord): string => {
  switch (record.kind) {
    case 'container':
    case 'tombstone':
      return keys.container(record.tenant, record.id);
    case 'tenant':
      return keys.tenant(record.tenant);
    case 'secret':
      return keys.secret(record.tenant, record.name, record.version);
    case 'secret_floor':
      return keys.secretFloor(record.tenant);
    case 'login':
      return keys.login(record.tenant, record.registry);
    case 'file':
      return keys.file(record.tenant, record.sha256);
    case 'key':
      return keys.key(record.tenant, record.id);
    case 'answer':
      return keys.answer(record.tenant, record.key);
    case 'signing_key':
      return keys.signingKey(record.id);
    case 'host':
      return keys.host(record.key);
    case 'revoked_key':
      return keys.revokedKey(record.publicKey);
    default:
      return vpnRecordKey(record);
  }
};

/** The latest time in a record: evidence that this time has come. */
export function changedAtMs(record: StateRecord): number {
  switch (record.kind) {
    case 'tombstone':
    case 'peer_tombstone':
      return record.goneAtMs;
    case 'lease':
      return record.state.phase === 'reserved' ? record.state.atMs : 0;
    case 'revoked':
    case 'revoked_key':
      return record.atMs;
    case 'key':
      return record.issuedAtS * 1000;
    case 'signing_key':
      return record.insertedAtMs;
    default:
      return record.updatedAtMs;
  }
}
