/**
 * `node dist/cli/keys/nats-keys.js <folder> [gateway ...]`: makes the NATS identities of a cluster,
 * or reads those that the folder holds, and writes what the servers' configuration includes. Each
 * gateway that is named gets credentials of its own. docs/deploy.md says where each file goes.
 */
import { join, resolve } from 'node:path';
import { prepareNatsIdentity, writePrivateFile } from './nats-identity.ts';
import { accountsConfiguration } from '../../dev/servers/nats.ts';
import { say } from '../../dev/steps.ts';

const [folder, ...gateways] = process.argv.slice(2);
if (folder === undefined) {
  say('usage: node dist/cli/keys/nats-keys.js <folder> [name of a gateway ...]');
  process.exit(2);
}
const identity = await prepareNatsIdentity(resolve(folder), gateways);
const accounts = join(resolve(folder), 'accounts.conf');
writePrivateFile(accounts, `${accountsConfiguration(identity, '/var/lib/nats/accounts').join('\n')}\n`);
say(`NATS servers include     ${accounts}`);
say(`NATS_CREDS_FILE, gateway ${identity.gatewayCredsFile}`);
for (const name of gateways) say(`NATS_CREDS_FILE, gateway ${join(resolve(folder), `gateway-${name}.creds`)}`);
say(`NATS_CREDS_FILE, actors  ${identity.actorsCredsFile}`);
say(`backup, restore, nats    ${identity.cpCredsFile}`);
say(`HOSTS_ACCOUNT            ${identity.hostsAccount}`);
say(`HOSTS_SIGNING_SEED_FILE  ${identity.hostsSigningSeedFile}`);
say(`NATS_SYSTEM_CREDS_FILE   ${identity.sysCredsFile}`);
say(`OPERATOR_SIGNING_SEED_FILE ${identity.operatorSigningSeedFile}`);
