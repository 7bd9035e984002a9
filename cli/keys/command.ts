/** Creates or loads the NATS identities of a cluster. docs/deploy.md says where each file goes. */
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { say } from '../../lib/terminal.ts';
import { UsageError, type Command } from '../command.ts';
import { accountsConfiguration } from './accounts.ts';
import { prepareNatsIdentity } from './nats-identity.ts';
import { writePrivateFile } from './private-file.ts';

const help = `usage: longshore keys FOLDER [GATEWAY ...]

Creates the NATS keys, credentials and accounts of a cluster in FOLDER, or loads those that FOLDER
already holds, and prints which program needs which file. Each named GATEWAY gets its own
credentials. docs/deploy.md says where each file goes.`;

interface Given {
  readonly folder: string;
  readonly gateways: readonly string[];
}

function read(args: readonly string[]): Given {
  const [folder, ...gateways] = parseArgs({ args: [...args], allowPositionals: true }).positionals;
  if (folder === undefined) throw new UsageError('FOLDER is missing.');
  return { folder: resolve(folder), gateways };
}

async function run({ folder, gateways }: Given): Promise<void> {
  const identity = await prepareNatsIdentity(folder, gateways);
  const accounts = join(folder, 'accounts.conf');
  writePrivateFile(accounts, `${accountsConfiguration(identity, '/var/lib/nats/accounts').join('\n')}\n`);
  say(`NATS servers include     ${accounts}`);
  say(`NATS_CREDS_FILE, gateway ${identity.gatewayCredsFile}`);
  for (const name of gateways) say(`NATS_CREDS_FILE, gateway ${join(folder, `gateway-${name}.creds`)}`);
  say(`HOSTS_ACCOUNT_FILE       ${identity.hostsAccountFile}`);
  say(`NATS_CREDS_FILE, actors  ${identity.actorsCredsFile}`);
  say(`backup, restore, nats    ${identity.cpCredsFile}`);
  say(`HOSTS_ACCOUNT            ${identity.hostsAccount}`);
  say(`HOSTS_SIGNING_SEED_FILE  ${identity.hostsSigningSeedFile}`);
  say(`NATS_SYSTEM_CREDS_FILE   ${identity.sysCredsFile}`);
  say(`OPERATOR_SIGNING_SEED_FILE ${identity.operatorSigningSeedFile}`);
}

export const keysCommand: Command<Given> = { help, read, run, failed: 'could not create the keys' };
