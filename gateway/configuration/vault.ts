/** The keys of the vault. */
import { ConfigurationError, readSettingFile } from '../../lib/config.ts';
import { parseVaultKeys, type VaultKey } from '../vault/vault.ts';
import type { GatewayConfiguration } from './settings.ts';

/** None where no keys are set. @throws ConfigurationError */
export function vaultKeysOf({
  VAULT_KEYS: keys,
  VAULT_KEYS_FILE: file,
}: Pick<GatewayConfiguration, 'VAULT_KEYS' | 'VAULT_KEYS_FILE'>): VaultKey[] {
  if (keys !== undefined && file !== undefined) {
    throw new ConfigurationError(['set VAULT_KEYS or VAULT_KEYS_FILE, not both']);
  }
  if (file !== undefined) return parseVaultKeys(readSettingFile('VAULT_KEYS_FILE', file));
  return keys === undefined ? [] : parseVaultKeys(keys);
}
