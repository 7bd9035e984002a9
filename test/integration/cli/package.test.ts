/** The package of the command alone, installed by npm into an empty folder. */
import { existsSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:net';
import type { AddressInfo } from 'node:net';
import { once } from 'node:events';
import { join } from 'node:path';
import t from 'tap';
import { repositoryRoot } from '../../../dev/paths.ts';
import { run, type Ran } from '../../../dev/process/run.ts';
import { packCommand } from '../../../dev/release/command.ts';
import { version } from '../../../lib/version.ts';
import { temporaryFolder } from '../../support/folder.ts';

const installDeadlineMs = 300_000;
const commandDeadlineMs = 60_000;

/** A port of this machine where nothing listens. */
async function silentPort(): Promise<number> {
  const server = createServer();
  server.listen(0, '127.0.0.1');
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  server.close();
  await once(server, 'close');
  return port;
}

t.test('the package of the command alone', { timeout: installDeadlineMs + 8 * commandDeadlineMs }, async (t) => {
  const folder = temporaryFolder(t);
  const packed = await packCommand(repositoryRoot);
  t.equal(packed.fileName, `longshore-${version}.tgz`);
  t.ok(packed.archive.equals((await packCommand(repositoryRoot)).archive), 'packed twice, it has the same bytes');
  const file = join(folder, packed.fileName);
  writeFileSync(file, packed.archive);
  writeFileSync(join(folder, 'package.json'), '{"private":true}\n');
  const env = { ...process.env, LONGSHORE_CONFIG: join(folder, 'config.json') };
  const installed = await run('npm', ['install', '--no-audit', '--no-fund', '--prefix', folder, file], {
    deadlineMs: installDeadlineMs,
    env,
    cwd: folder,
  });
  t.equal(installed.code, 0, 'npm installs it', { output: installed.stdout + installed.stderr });

  const longshore = (...args: string[]): Promise<Ran> =>
    run(join(folder, 'node_modules/.bin/longshore'), args, { deadlineMs: commandDeadlineMs, env, cwd: folder });

  await t.test('brings no package and no code of the servers', (t) => {
    const servers = ['@uwsjs', 'ioredis', 'node-forge', '@nats-io', 'prom-client', 'pino', 'esbuild'];
    t.same(
      servers.filter((name) => existsSync(join(folder, 'node_modules', name))),
      [],
    );
    t.same(readdirSync(join(folder, 'node_modules/longshore/dist')).sort(), ['cli', 'lib', 'schemas']);
    t.end();
  });

  await t.test('runs', async (t) => {
    t.match(await longshore('--version'), { code: 0, stdout: version, stderr: '' });
    t.match(await longshore('--help'), { code: 0, stdout: 'Usage: longshore', stderr: '' });
  });

  await t.test('says that a server is not there', async (t) => {
    const server = `http://127.0.0.1:${await silentPort()}`;
    const token = 'e30.e30.e30';
    const ran = await run(join(folder, 'node_modules/.bin/longshore'), ['ps', '--server', server], {
      deadlineMs: commandDeadlineMs,
      env: { ...env, LONGSHORE_TOKEN: token },
      cwd: folder,
    });
    t.equal(ran.code, 1);
    t.equal(ran.stdout, '');
    t.match(ran.stderr, server);
    t.match(ran.stderr, 'Check the address with "longshore profile ls".');
  });

  for (const name of ['backup', 'restore', 'nats-keys']) {
    await t.test(`says where ${name} runs`, async (t) => {
      const ran = await longshore(name, '--help');
      t.equal(ran.code, 1);
      t.match(ran.stderr, `"${name}" is not in the package of the command line alone: run it in a checkout`);
    });
  }
});
