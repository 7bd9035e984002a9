/**
 * `longshore nats-keys`: the NATS identities of a cluster in a folder, what of them is valid, and
 * how one is replaced or taken back. docs/deploy.md says where each file goes.
 */
import { createHash } from 'node:crypto';
import { mkdirSync, realpathSync } from 'node:fs';
import { join, resolve } from 'node:path';
import type { Terminal } from '../../cli/context.ts';
import { Refused, WrongUsage } from '../../cli/terminal/errors.ts';
import { joined } from '../../cli/terminal/output.ts';
import { takeNameLock } from '../../lib/process/name-lock.ts';
import { writePrivateFile } from '../../lib/process/private-file.ts';
import { systemClock } from '../../lib/time/clock.ts';
import { wholeSeconds } from '../../schemas/quantity.ts';
import { accountsConfiguration } from './accounts.ts';
import { checkName, keysToRevoke, revokeKeys, rotateKey } from './change.ts';
import { validKeysOf } from './issued.ts';
import { tableOfKeys } from './list.ts';
import { credsPath, hasKeys, prepareNatsIdentity, signingNames, type NatsIdentity } from './nats-identity.ts';
import { connectionsByKey, isAtServers, namesServers, pushAccounts, withSystem } from './servers.ts';

type Process = Pick<Terminal, 'env' | 'stdout'>;

const sayTo =
  ({ stdout }: Process) =>
  (line: string): void =>
    stdout.write(`${line}\n`);

/** One command at a time works in a folder. */
async function withFolder(name: string, work: (folder: string) => Promise<void>): Promise<void> {
  const folder = resolve(name);
  // A wrong path is not to become a cluster of its own.
  if (!hasKeys(folder))
    throw new Refused(`${folder} has no keys of a cluster: make them with longshore nats-keys create FOLDER`);
  await withLock(folder, () => work(folder));
}

async function withLock(folder: string, work: () => Promise<void>): Promise<void> {
  const digest = createHash('sha256').update(realpathSync(folder)).digest('hex');
  const lock = await takeNameLock(`nats-keys-${digest}`);
  if (lock === undefined) throw new Refused(`another command works in ${folder}: wait for its end`);
  try {
    await work();
  } finally {
    await lock.release();
  }
}

const accountsPath = (folder: string): string => join(folder, 'accounts.conf');

/** Writes the file that the servers read when they start. */
const writeAccounts = (folder: string, identity: NatsIdentity): void =>
  writePrivateFile(accountsPath(folder), `${accountsConfiguration(identity, '/var/lib/nats/accounts').join('\n')}\n`);

export async function createKeys(terminal: Process, name: string, gateways: readonly string[]): Promise<void> {
  const folder = resolve(name);
  mkdirSync(folder, { recursive: true, mode: 0o700 });
  await withLock(folder, () => create(terminal, folder, gateways));
}

async function create(terminal: Process, folder: string, gateways: readonly string[]): Promise<void> {
  const say = sayTo(terminal);
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

export async function listKeys(terminal: Process, name: string): Promise<void> {
  const { env, stdout } = terminal;
  await withFolder(name, async (folder) => {
    const identity = await prepareNatsIdentity(folder);
    const connections = namesServers(env) ? await withSystem(env, identity, connectionsByKey) : undefined;
    const table = tableOfKeys(identity, connections, wholeSeconds(systemClock.nowMs()));
    stdout.write(joined([table, '\n']));
    if (connections === undefined) sayTo(terminal)('Set NATS_URLS to see who is connected by each key.');
  });
}

/** @param days lifetime of the new credentials; if absent, they do not expire */
export const rotate = (terminal: Process, folderName: string, name: string, days?: number): Promise<void> =>
  withFolder(folderName, (folder) => rotateIn(terminal, folder, name, days));

async function rotateIn(terminal: Process, folder: string, name: string, days?: number): Promise<void> {
  const { env } = terminal;
  const say = sayTo(terminal);
  const before = await prepareNatsIdentity(folder);
  checkName(before, name);
  const isSigning = (signingNames as readonly string[]).includes(name);
  if (isSigning && days !== undefined) throw new WrongUsage(`${name} does not expire: leave --days out.`);
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

/** @param isNow also a signing key by which hosts are connected */
export const revoke = (terminal: Process, folderName: string, nameOrKey: string, isNow: boolean): Promise<void> =>
  withFolder(folderName, (folder) => revokeIn(terminal, folder, nameOrKey, isNow));

async function revokeIn(terminal: Process, folder: string, nameOrKey: string, isNow: boolean): Promise<void> {
  const { env } = terminal;
  const say = sayTo(terminal);
  const before = await prepareNatsIdentity(folder);
  const keys = keysToRevoke(before, nameOrKey);
  if (!namesServers(env)) throw new Refused('NATS_URLS is missing: it names the NATS servers to tell');
  const signing = keys.filter(({ name }) => name === 'hosts-signing');
  if (signing.length > 0 && !isNow) {
    const connections = await withSystem(env, before, connectionsByKey);
    const names = signing.flatMap(({ key }) => connections.get(key) ?? []);
    if (names.length > 0)
      throw new Refused(
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
