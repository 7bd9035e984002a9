import type { NetworkName } from '../../schemas/ids.ts';
import type { PeerUpdate } from '../../schemas/messages.ts';
import type { Validated } from '../create.ts';

/** What a tenant says of a peer that it makes. `network` null: the only one there is. */
export interface PeerSettings {
  readonly name: string;
  readonly network: NetworkName | null;
  readonly expiresAtMs: number | null;
  readonly routes: readonly string[] | null;
  readonly dns: readonly string[] | null;
}

export function validatePeerCreate(_body: unknown, _nowMs: number): Validated<PeerSettings> {
  throw new Error('to come');
}
/** What is absent from the body is absent from the update. */
export function validatePeerUpdate(_body: unknown, _nowMs: number): Validated<PeerUpdate> {
  throw new Error('to come');
}
