import t from 'tap';
import { settings } from '../../../gateway/configuration/settings.ts';
import { vaultKeysOf } from '../../../gateway/configuration/vault.ts';
import { readSettings } from '../../../lib/config.ts';

const keysOf = (env: Record<string, string>) => vaultKeysOf(readSettings(settings, env));
const line = `k1:${Buffer.alloc(32, 1).toString('base64')}`;

t.test('keys come from a setting or from a file, not from both', (t) => {
  const file = t.testdir({ keys: `${line}\n` }) + '/keys';
  t.same(keysOf({}), []);
  t.match(keysOf({ VAULT_KEYS: line }), [{ id: 'k1' }]);
  t.same(keysOf({ VAULT_KEYS_FILE: file }), keysOf({ VAULT_KEYS: line }));
  t.throws(() => keysOf({ VAULT_KEYS: line, VAULT_KEYS_FILE: file }), /set VAULT_KEYS or VAULT_KEYS_FILE, not both/);
  t.end();
});
