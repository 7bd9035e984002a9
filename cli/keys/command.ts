/**
 * `longshore nats-keys`: the NATS identities of a cluster in a folder, what of them is valid, and
 * how one is replaced or taken back. docs/deploy.md says where each file goes.
 */
import { mkdirSync } from 'node:fs';
import { join, resolve } from 'node:path';
import { parseArgs } from 'node:util';
import { say } from '../../lib/terminal.ts';
import { systemClock } from '../../lib/time/clock.ts';
import { limits } from '../../schemas/limits.ts';
import { wholeSeconds } from '../../schemas/quantity.ts';
import { tryLock } from '../../dev/process/lockdir.ts';
import { UsageError, type Command } from '../command.ts';
import { joined, standardOutput } from '../terminal/output.ts';
import { accountsConfiguration } from './accounts.ts';
import { checkName, keysToRevoke, revokeKeys, rotateKey } from './change.ts';
import { validKeysOf } from './issued.ts';
import { listKeys } from './list.ts';
import { credsPath, hasKeys, prepareNatsIdentity, signingNames, type NatsIdentity } from './nats-identity.ts';
import { writePrivateFile } from './private-file.ts';
import { connectionsByKey, isAtServers, namesServers, pushAccounts, withSystem } from './servers.ts';

const help = `usage: longshore nats-keys FOLDER [GATEWAY ...]
       longshore nats-keys list FOLDER
       longshore nats-keys rotate FOLDER NAME [--days N]
       longshore nats-keys revoke FOLDER NAME|KEY [--now]

Creates the NATS keys, credentials and accounts of a cluster in FOLDER, or loads those that FOLDER
already holds, and prints which program needs which file. Each named GATEWAY gets its own
credentials. docs/deploy.md says where each file goes.

  list      every key that FOLDER has issued, its dates, and who is connected by it now
  rotate    makes a new key for NAME, such as gateway-g1, actors or hosts-signing; the earlier ones
            stay valid
  revoke    the servers refuse the earlier keys of NAME, or that one KEY, and close its connections

  --days N  the new credentials of NAME expire after so many days; default: never
  --now     also a signing key by which hosts are connected: each asks a gateway for credentials

NATS_URLS and NATS_CA_FILE name the servers that list asks and rotate and revoke tell. A command
that was cut short can be repeated.`;

type Given = { readonly folder: string } & (
  | { readonly verb: 'prepare'; readonly gateways: readonly string[] }
  | { readonly verb: 'list' }
  | { readonly verb: 'rotate'; readonly name: string; readonly days: number | undefined }
  | { readonly verb: 'revoke'; readonly nameOrKey: string; readonly isNow: boolean }
);

function read(args: readonly string[]): Given {
  const { values, positionals } = parseArgs({
    args: [...args],
    options: { days: { type: 'string' }, now: { type: 'boolean', default: false } },
    allowPositionals: true,
  });
  const [verb, ...rest] = positionals;
  const isVerb = verb === 'list' || verb === 'rotate' || verb === 'revoke';
  const [folderName, target, ...more] = isVerb ? rest : positionals;
  if (folderName === undefined) throw new UsageError('FOLDER is missing.');
  const folder = resolve(folderName);
  if (values.days !== undefined && verb !== 'rotate') throw new UsageError('--days is an option of rotate.');
  if (values.now && verb !== 'revoke') throw new UsageError('--now is an option of revoke.');
  if (!isVerb) return { verb: 'prepare', folder, gateways: positionals.slice(1) };
  const excess = verb === 'list' ? [target, ...more].filter((each) => each !== undefined) : more;
  if (excess.length > 0) throw new UsageError(`Remove ${excess.join(' ')}.`);
  if (verb === 'list') return { verb, folder };
  if (target === undefined) throw new UsageError(verb === 'rotate' ? 'NAME is missing.' : 'NAME or KEY is missing.');
  if (verb === 'rotate') return { verb, folder, name: target, days: daysOf(values.days) };
  return { verb, folder, nameOrKey: target, isNow: values.now };
}

function daysOf(text: string | undefined): number | undefined {
  if (text === undefined) return undefined;
  const days = Number(text);
  if (Number.isInteger(days) && days >= 1 && days <= limits.keysDaysMax) return days;
  throw new UsageError(`--days is a whole number from 1 to ${limits.keysDaysMax}.`);
}

async function run(given: Given, env: NodeJS.ProcessEnv): Promise<void> {
  if (given.verb === 'prepare') mkdirSync(given.folder, { recursive: true, mode: 0o700 });
  // A wrong path is not to become a cluster of its own.
  else if (!hasKeys(given.folder))
    throw new Error(`${given.folder} has no keys of a cluster: make them with longshore nats-keys FOLDER`);
  const lock = tryLock(join(given.folder, 'keys.lock'));
  if (lock === undefined) throw new Error(`another command works in ${given.folder}: wait for its end`);
  try {
    switch (given.verb) {
      case 'prepare':
        return await prepare(given);
      case 'list':
        return await list(given, env);
      case 'rotate':
        return await rotate(given, env);
      case 'revoke':
        return await revoke(given, env);
    }
  } finally {
    lock.release();
  }
}

type GivenTo<V extends Given['verb']> = Extract<Given, { verb: V }>;

const accountsPath = (folder: string): string => join(folder, 'accounts.conf');

/** What the servers read when they start. */
const writeAccounts = (folder: string, identity: NatsIdentity): void =>
  writePrivateFile(accountsPath(folder), `${accountsConfiguration(identity, '/var/lib/nats/accounts').join('\n')}\n`);

async function prepare({ folder, gateways }: GivenTo<'prepare'>): Promise<void> {
  const identity = await prepareNatsIdentity(folder, gateways);
  writeAccounts(folder, identity);
  say(`NATS servers include     ${accountsPath(folder)}`);
  say(`NATS_CREDS_FILE, gateway ${identity.gatewayCredsFile}`);
  for (const name of gateways) say(`NATS_CREDS_FILE, gateway ${credsPath(folder, `gateway-${name}`)}`);
  say(`HOSTS_ACCOUNT_FILE       ${identity.hostsAccountFile}`);
  say(`NATS_CREDS_FILE, actors  ${identity.actorsCredsFile}`);
  say(`backup, restore, nats    ${identity.cpCredsFile}`);
  say(`HOSTS_ACCOUNT            ${identity.hostsAccount}`);
  say(`HOSTS_SIGNING_SEED_FILE  ${identity.hostsSigningSeedFile}`);
  say(`NATS_SYSTEM_CREDS_FILE   ${identity.sysCredsFile}`);
  say(`OPERATOR_SIGNING_SEED_FILE ${identity.operatorSigningSeedFile}`);
}

async function list({ folder }: GivenTo<'list'>, env: NodeJS.ProcessEnv): Promise<void> {
  const identity = await prepareNatsIdentity(folder);
  const connections = namesServers(env) ? await withSystem(env, identity, connectionsByKey) : undefined;
  const table = listKeys(identity, connections, wholeSeconds(systemClock.nowMs()));
  standardOutput().write(joined([table, '\n']));
  if (connections === undefined) say('Set NATS_URLS to see who is connected by each key.');
}

async function rotate({ folder, name, days }: GivenTo<'rotate'>, env: NodeJS.ProcessEnv): Promise<void> {
  const before = await prepareNatsIdentity(folder);
  checkName(before, name);
  const isSigning = (signingNames as readonly string[]).includes(name);
  if (isSigning && days !== undefined) throw new UsageError(`${name} does not expire: leave --days out.`);
  if (name !== 'hosts-signing') {
    const identity = await rotateKey(folder, name, days === undefined ? undefined : days * secondsOfDay);
    writeAccounts(folder, identity);
    say(`${name} has the new key ${identity.current.get(name)}; the earlier ones stay valid.`);
    for (const line of stepsAfter(name)) say(line);
    return;
  }
  const servers = await withSystem(env, before, async (system) => {
    // The rotation that was cut short before the servers had its key is completed.
    const isKnown = await isAtServers(system, before, before.current.get(name)!);
    const identity = isKnown ? await rotateKey(folder, name) : before;
    writeAccounts(folder, identity);
    const told = await pushAccounts(system, identity);
    say(`${name} has the new key ${identity.current.get(name)}; the earlier ones stay valid.`);
    return told;
  });
  say(`Servers that accept it: ${servers.join(', ')}.`);
  for (const line of stepsAfter(name)) say(line);
}

const secondsOfDay = 86_400;

function stepsAfter(name: string): string[] {
  if (name === 'hosts-signing')
    return [
      '1. Give hosts.jwt to every gateway (HOSTS_ACCOUNT_FILE) and wait ten seconds.',
      '2. Give hosts-signing.seed to every actors process, and restart one after the other.',
      '3. Hosts ask for new credentials within a minute: longshore nats-keys list FOLDER counts them.',
      '4. When none is connected by the earlier key: longshore nats-keys revoke FOLDER hosts-signing',
    ];
  if (name === 'operator-signing')
    return [
      '1. Give accounts.conf to every NATS server, and restart one after the other.',
      '2. Give operator-signing.seed to every actors process, and restart one after the other.',
      '3. longshore nats-keys revoke FOLDER operator-signing',
    ];
  return [
    `1. Put ${name}.creds in the place of the earlier file, and restart what uses it, one after the other.`,
    `2. longshore nats-keys revoke FOLDER ${name}`,
  ];
}

async function revoke({ folder, nameOrKey, isNow }: GivenTo<'revoke'>, env: NodeJS.ProcessEnv): Promise<void> {
  const before = await prepareNatsIdentity(folder);
  const keys = keysToRevoke(before, nameOrKey);
  if (!namesServers(env)) throw new UsageError('NATS_URLS is missing: it names the NATS servers to tell.');
  const signing = keys.filter(({ name }) => name === 'hosts-signing');
  if (signing.length > 0 && !isNow) {
    const connections = await withSystem(env, before, connectionsByKey);
    const names = signing.flatMap(({ key }) => connections.get(key) ?? []);
    if (names.length > 0)
      throw new Error(
        `${names.length} hosts are connected by it: ${names.slice(0, namesShown).join(', ')}. Nothing was changed. ` +
          'Wait until they have others, or give --now',
      );
  }
  const identity = await revokeKeys(folder, keys);
  writeAccounts(folder, identity);
  // As the user of the new file, should the key of the earlier one be among the revoked.
  const servers = await withSystem(env, identity, (system) => pushAccounts(system, identity));
  const news = keys.filter(({ revoked }) => revoked === undefined);
  for (const { name, key } of news.length > 0 ? news : keys) say(`Revoked: ${name} ${key}`);
  for (const name of new Set(keys.map((each) => each.name)))
    for (const { key } of validKeysOf(identity.issued, name)) say(`Valid: ${name} ${key}`);
  say(`Servers that refuse it: ${servers.join(', ')}. One that is away refuses it within a minute after it is back.`);
  if (signing.length > 0) say('Give hosts.jwt to every gateway (HOSTS_ACCOUNT_FILE).');
  say('Give accounts.conf to every NATS server, which reads it if it has lost its folder of accounts.');
  if (keys.some(({ name }) => name === 'operator-signing'))
    say('A server accepts an operator key until it is restarted with it: restart one after the other.');
}

const namesShown = 10;

export const keysCommand: Command<Given> = { help, read, run, failed: 'keys failed' };
