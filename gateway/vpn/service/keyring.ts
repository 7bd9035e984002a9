/** The VPN area's own resources: the operator's keys, and the threads that make and use keys. */
import { failure } from '../../http/respond.ts';
import type { PkiPool } from '../pki/pool.ts';
import { noVaultKeys, type Vault } from '../../vault/vault.ts';
import { Refusal } from './refusal.ts';

export interface Keyring {
  readonly vault: Vault;
  readonly pool: Pick<PkiPool, 'run'>;
}

/** @throws Refusal without configured keys: the gateway can open no secret of the VPN area. */
export function keyringOf(keyring: Keyring | undefined): Keyring {
  if (keyring === undefined) throw new Refusal(failure('unavailable', noVaultKeys));
  return keyring;
}
