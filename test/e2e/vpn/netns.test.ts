/** The network of VPN tests is isolated, and is removed however its test ends. */
import { spawn } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import { once } from 'node:events';
import { networkInterfaces } from 'node:os';
import t from 'tap';
import { allProcesses } from '../../../dev/process/proc.ts';
import { eventually } from '../support/eventually.ts';
import { createNetwork, skipWithoutNetwork, wire } from './netns.ts';

t.setTimeout(90_000);
const skip = await skipWithoutNetwork();

t.test('two networks reach neither each other nor the machine', { skip }, async (t) => {
  const [one, other] = await Promise.all([createNetwork(t), createNetwork(t)]);
  // Engines of other test files add and remove interfaces of their own, so the lists may differ.
  const machine = networkInterfaces();
  t.notOk('wire' in machine, 'the machine has no end of a wire');
  const ours: readonly string[] = Object.values(wire).flatMap(({ ipv4, ipv6 }) => [ipv4, ipv6]);
  t.same(
    Object.values(machine).flatMap((addresses = []) => addresses.filter(({ address }) => ours.includes(address))),
    [],
    'the machine has no address of a wire',
  );
  await one.server.must('ip', ['address', 'add', '10.1.2.3', 'dev', 'wire']);
  t.notMatch((await other.server.must('ip', ['address'])).stdout, /10\.1\.2\.3/);
  t.notOk(await one.client.ping('10.1.2.3', 1), 'an address inside a tunnel does not answer on the wire');
  for (const { client } of [one, other]) t.ok(await client.ping(wire.server.ipv6, 5));
  t.equal((await one.server.run('ls', ['/run'])).stdout, '', "its /run is not the machine's");
});

/** The number of processes started in a network: their environment names its folder. */
const livingIn = (folder: string): number =>
  allProcesses().filter(({ pid }) => {
    try {
      return readFileSync(`/proc/${pid}/environ`, 'utf8').includes(folder);
    } catch {
      return false;
    }
  }).length;

t.test('a killed test leaves nothing of its network', { skip }, async (t) => {
  const owner = `
    import t from 'tap';
    import { createNetwork } from ${JSON.stringify(join(import.meta.dirname, 'netns.js'))};
    t.test('never ends', { timeout: 60_000 }, async (t) => {
      const { client } = await createNetwork(t);
      await client.must('sh', ['-c', 'setsid sleep 60 >/dev/null 2>&1 &']);
      process.stderr.write('folder ' + client.folder + '\\n');
      await new Promise((resolve) => setTimeout(resolve, 60_000));
    });`;
  const child = spawn(process.execPath, ['--input-type=module', '-e', owner], { stdio: ['ignore', 'ignore', 'pipe'] });
  t.teardown(() => child.kill('SIGKILL'));
  let folder: string | undefined;
  for await (const line of createInterface({ input: child.stderr })) {
    folder = /^folder (.*)$/.exec(line)?.[1];
    if (folder !== undefined) break;
  }
  if (folder === undefined) return t.fail('the network did not come up');
  const path = folder;
  t.ok(livingIn(path) >= 2, 'the process that holds the namespace runs, and a daemon');
  child.kill('SIGKILL');
  await once(child, 'exit');
  await eventually(
    'every process has ended',
    async () => Promise.resolve(livingIn(path)),
    (count) => count === 0,
  );
  await eventually(
    'the folder is removed',
    async () => Promise.resolve(existsSync(path)),
    (there) => !there,
  );
  t.pass('the killed test left nothing');
});
