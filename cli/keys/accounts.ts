/** Who may connect to NATS, as lines of a nats-server's configuration. */
import type { NatsIdentity } from './nats-identity.ts';

/**
 * The server keeps the accounts in a folder of its own and takes changes of them. Where that folder
 * and these lines differ, the newer account counts.
 */
export const accountsConfiguration = (identity: NatsIdentity, accountsDir: string): string[] => [
  `operator: "${identity.operatorJwt}"`,
  `system_account: ${identity.systemAccount}`,
  'resolver {',
  '  type: full',
  `  dir: ${JSON.stringify(accountsDir)}`,
  '  allow_delete: false',
  '  interval: "1m"',
  '}',
  'resolver_preload: {',
  ...Object.entries(identity.accountJwts).map(([key, jwt]) => `  ${key}: "${jwt}"`),
  '}',
];
