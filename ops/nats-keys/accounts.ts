/** The NATS operator and its accounts as lines of a nats-server configuration. */
import type { NatsIdentity } from './nats-identity.ts';

/**
 * The server keeps the accounts in `accountsDir` and accepts changes to them. If that folder and
 * these lines differ, the server uses the account that was signed later.
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
