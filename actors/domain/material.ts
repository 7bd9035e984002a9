/**
 * Records that gateways keep a copy of: an answer has the record and its version, or only says that
 * the asker's copy is still current. Pure.
 */
import { createHash } from 'node:crypto';
import type { NetworkRecord } from '../../schemas/api/network.ts';
import type { PeerRecord } from '../../schemas/api/peer.ts';
import type { SuccessReply } from './turn.ts';

/** A change makes a new record, so what was computed of one stays true. */
const versions = new WeakMap<PeerRecord | NetworkRecord, string>();

/** Equal versions mean equal records, whichever process or restore they come from. */
function versionOf(record: PeerRecord | NetworkRecord): string {
  const computed = versions.get(record);
  if (computed !== undefined) return computed;
  const version = createHash('sha256').update(JSON.stringify(record)).digest('base64url');
  versions.set(record, version);
  return version;
}

/** @param known the version of the asker's copy */
export function materialOf(record: PeerRecord | NetworkRecord, known: string | undefined): SuccessReply {
  const version = versionOf(record);
  return { code: 'ok', body: JSON.stringify({ data: known === version ? null : record, version }) };
}
