import t from 'tap';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { readLedger } from '../../../dev/process/ledger.ts';
import { isAlive, processName, type ProcessName } from '../../../dev/process/proc.ts';
import { freePort, startServer, type ServerSpec } from '../../../dev/process/process.ts';
import { startRedis } from '../../../dev/servers/redis.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { until } from '../../support/until.ts';

const script = (folder: string, source: string, over: Partial<ServerSpec> = {}): ServerSpec => ({
  name: 'script',
  command: '/bin/sh',
  args: ['-c', source],
  env: process.env,
  cwd: folder,
  logFile: join(folder, 'log'),
  ready: () => Promise.resolve(true),
  readyDeadlineMs: 60_000,
  stopGraceMs: 300,
  ...over,
});

t.test('a server that ends before it is ready fails with the end of its log', async (t) => {
  const spec = script(temporaryFolder(t), 'echo cannot open the database; exit 3', {
    ready: () => Promise.resolve(false),
  });
  await t.rejects(startServer(spec), /script ended with exit code 3.*cannot open the database/s);
});

t.test('a server that never gets ready is ended at the deadline', async (t) => {
  const folder = temporaryFolder(t);
  const spec = script(folder, 'echo $$ > pid; exec sleep 60', {
    ready: () => Promise.resolve(false),
    readyDeadlineMs: 300,
  });
  await t.rejects(startServer(spec), /was not ready within 300 ms/);
  // On a starved machine it is ended before it has written its pid.
  const pid = existsSync(join(folder, 'pid')) ? readFileSync(join(folder, 'pid'), 'utf8') : '';
  t.equal(processName(Number(pid)), undefined);
});

t.test('a program that does not exist fails by name', async (t) => {
  const spec = script(temporaryFolder(t), '', { command: '/nonexistent/server' });
  await t.rejects(startServer(spec), /\/nonexistent\/server cannot be started/);
});

t.test('stop ends what ignores SIGTERM after the grace, with its children', async (t) => {
  const folder = temporaryFolder(t);
  const server = await startServer(
    script(folder, `trap '' TERM; sleep 61 & echo $! > child; while :; do sleep 62; done`, {
      ready: () => Promise.resolve(existsSync(join(folder, 'child'))),
    }),
  );
  await until('the child is written', () => readFileSync(join(folder, 'child'), 'utf8') !== '');
  const child = processName(Number(readFileSync(join(folder, 'child'), 'utf8')));
  t.ok(child);
  t.same(await server.stop(), { kind: 'signal', signal: 'SIGKILL' });
  t.notOk(isAlive(child!), 'the child is gone too');
  t.same(await server.stop(), { kind: 'signal', signal: 'SIGKILL' }, 'stopping twice is no fault');
});

t.test('a paused server can be stopped', async (t) => {
  const server = await startServer(script(temporaryFolder(t), 'exec sleep 60', { stopGraceMs: 60_000 }));
  server.pause();
  t.same(await server.stop(), { kind: 'signal', signal: 'SIGTERM' }, 'by its SIGTERM, not the SIGKILL');
});

t.test('free ports are free and differ', async (t) => {
  const ports = await Promise.all(Array.from({ length: 10 }, freePort));
  t.ok(new Set(ports).size >= 9);
  t.ok(ports.every((port) => port >= 20_000 && port < 32_000));
});

t.test('redis answers, and is gone after stop', async (t) => {
  const redis = await startRedis({ folder: temporaryFolder(t) });
  const name = processName(redis.server().pid);
  t.match(redis.url, /^redis:\/\/127\.0\.0\.1:\d+$/);
  await redis.stop();
  t.notOk(isAlive(name!));
});

/** A program of its own that starts servers and then waits, for the tests that kill it. */
async function parentWithServers(folder: string): Promise<{ kill: () => void; servers: ProcessName[] }> {
  const file = join(folder, 'parent.mjs');
  const from = (name: string): string => JSON.stringify(new URL(`../../../dev/${name}`, import.meta.url).href);
  writeFileSync(
    file,
    `import { startServer } from ${from('process/process.js')};
     import { startRedis } from ${from('servers/redis.js')};
     const spec = { name: 's', command: '/bin/sh', args: ['-c', 'sleep 63 & sleep 64'], env: process.env, cwd: ${JSON.stringify(folder)},
       logFile: ${JSON.stringify(join(folder, 'log'))}, ready: async () => true, readyDeadlineMs: 60_000, stopGraceMs: 300 };
     const [server, redis] = [await startServer(spec), await startRedis({ folder: ${JSON.stringify(folder)} })];
     console.log(JSON.stringify([server.pid, redis.server().pid]));
     setInterval(() => {}, 1000);`,
  );
  const parent = spawn(process.execPath, [file], { stdio: ['ignore', 'pipe', 'inherit'] });
  const [line] = (await once(parent.stdout, 'data')) as [Buffer];
  const servers = (JSON.parse(line.toString()) as number[]).flatMap((pid) => processName(pid) ?? []);
  return { kill: () => parent.kill('SIGKILL'), servers };
}

t.test('what a killed program started is ended, and nothing else', async (t) => {
  const [victim, bystander] = await Promise.all([
    parentWithServers(temporaryFolder(t)),
    parentWithServers(temporaryFolder(t)),
  ]);
  t.equal(victim.servers.length, 2);
  victim.kill();
  await until('the servers are gone', () => !victim.servers.some(isAlive));
  t.ok(bystander.servers.every(isAlive), "another program's servers live");
  bystander.kill();
  await until('these too', () => !bystander.servers.some(isAlive));
});

t.test('a ledger cut short by a crash tells all but its last line', (t) => {
  const folder = { kind: 'folder', id: 'f', path: '/x' };
  const text = [
    { owner: { pid: 1, startTicks: '2', bootId: 'b' } },
    { add: folder },
    { add: { ...folder, id: 'g' } },
    { done: 'g' },
  ].map((line) => JSON.stringify(line));
  t.same(readLedger([...text, '{"add":{"kin'].join('\n')), {
    owner: { pid: 1, startTicks: '2', bootId: 'b' },
    left: [folder],
  });
  t.end();
});

t.test('a process is known by more than its pid', (t) => {
  const self = processName(process.pid)!;
  t.ok(isAlive(self));
  t.notOk(isAlive({ ...self, startTicks: '1' }), 'the pid was given to another process since');
  t.notOk(isAlive({ ...self, bootId: 'other' }), 'the machine was restarted since');
  t.end();
});
