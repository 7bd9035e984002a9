/** The keys of the vault. Each setting may be given under its name from before 0.2.0. */
import { ConfigurationError, readSettingFile } from '../../lib/config.ts';
import { parseVaultKeys, type VaultKey } from '../vault/vault.ts';
import type { GatewayConfiguration } from './settings.ts';

const names = ['VAULT_KEYS', 'VAULT_KEYS_FILE', 'VPN_KEYS', 'VPN_KEYS_FILE'] as const;

/** None where no keys are set. @throws ConfigurationError */
export function vaultKeysOf(configuration: Pick<GatewayConfiguration, (typeof names)[number]>): VaultKey[] {
  const [name, other] = names.filter((one) => configuration[one] !== undefined);
  if (other !== undefined) throw new ConfigurationError([`set ${name} or ${other}, not both`]);
  if (name === undefined) return [];
  const given = configuration[name] ?? '';
  return parseVaultKeys(name.endsWith('_FILE') ? readSettingFile(name, given) : given);
}
