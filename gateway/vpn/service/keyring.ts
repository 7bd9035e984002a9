/**
 * The VPN area's own resources: the operator's keys, and the threads that make and use others.
 */
import { failure } from '../../http/respond.ts';
import type { PkiPool } from '../pki/pool.ts';
import type { Vault } from '../pki/vault.ts';
import { Refusal } from './refusal.ts';

export interface Keyring {
  readonly vault: Vault;
  readonly pool: PkiPool;
}

/** @throws Refusal where the gateway was given no keys: nothing of the VPN area can be opened. */
export function keyringOf(keyring: Keyring | undefined): Keyring {
  if (keyring === undefined) throw new Refusal(failure('unavailable', 'this gateway has no VPN keys'));
  return keyring;
}
