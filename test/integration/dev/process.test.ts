import t from 'tap';
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
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

t.test('the error for a server that exits before it is ready shows the end of its log', async (t) => {
  const spec = script(temporaryFolder(t), 'echo cannot open the database; exit 3', {
    ready: () => Promise.resolve(false),
  });
  await t.rejects(startServer(spec), /script ended with exit code 3.*cannot open the database/s);
});

t.test('a server that is not ready at the deadline is killed', async (t) => {
  const folder = temporaryFolder(t);
  const spec = script(folder, 'echo $$ > pid; exec sleep 60', {
    ready: () => Promise.resolve(false),
    readyDeadlineMs: 300,
  });
  await t.rejects(startServer(spec), /was not ready within 300 ms/);
  // On a slow machine the script may be killed before it has written its pid.
  const pid = existsSync(join(folder, 'pid')) ? readFileSync(join(folder, 'pid'), 'utf8') : '';
  t.equal(processName(Number(pid)), undefined);
});

t.test('a server is not asked whether it is ready while another program has its port', async (t) => {
  const seen: string[] = [];
  const foreign = createServer((request, response) => {
    seen.push(request.url ?? '');
    response.end();
  });
  t.teardown(() => foreign.close());
  await once(foreign.listen(0, '127.0.0.1'), 'listening');
  const { port } = foreign.address() as AddressInfo;
  const ready = async (): Promise<boolean> => (await fetch(`http://127.0.0.1:${port}/readyz`)).ok;
  const spec = script(temporaryFolder(t), 'exec sleep 60', { port, ready, readyDeadlineMs: 300 });
  await t.rejects(startServer(spec), /was not ready within 300 ms/);
  t.same(seen, []);
});

t.test('the error for a missing program names it', async (t) => {
  const spec = script(temporaryFolder(t), '', { command: '/nonexistent/server' });
  await t.rejects(startServer(spec), /\/nonexistent\/server cannot be started/);
});

t.test('stop kills a server that ignores SIGTERM, and its children, after the grace period', async (t) => {
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
  t.notOk(isAlive(child!), 'the child has ended, too');
  t.same(await server.stop(), { kind: 'signal', signal: 'SIGKILL' }, 'a second stop has the same result');
});

t.test('a paused server can be stopped', async (t) => {
  const server = await startServer(script(temporaryFolder(t), 'exec sleep 60', { stopGraceMs: 60_000 }));
  server.pause();
  t.same(await server.stop(), { kind: 'signal', signal: 'SIGTERM' }, 'SIGTERM ends it, not SIGKILL');
});

t.test('free ports are free and differ', async (t) => {
  const ports = await Promise.all(Array.from({ length: 10 }, () => freePort()));
  t.equal(new Set(ports).size, 10);
  t.ok(ports.every((port) => port >= 20_000 && port < 32_000));
});

t.test('Redis starts and stops', async (t) => {
  const redis = await startRedis({ folder: temporaryFolder(t) });
  const name = processName(redis.server().pid);
  t.match(redis.url, /^redis:\/\/127\.0\.0\.1:\d+$/);
  await redis.stop();
  t.notOk(isAlive(name!));
});

/** A program that starts servers and waits, for tests that kill it. */
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

t.test('the servers of a killed program are ended, and no others', async (t) => {
  const [victim, bystander] = await Promise.all([
    parentWithServers(temporaryFolder(t)),
    parentWithServers(temporaryFolder(t)),
  ]);
  t.equal(victim.servers.length, 2);
  victim.kill();
  await until('the servers are gone', () => !victim.servers.some(isAlive));
  t.ok(bystander.servers.every(isAlive), "another program's servers keep running");
  bystander.kill();
  await until('the other servers end', () => !bystander.servers.some(isAlive));
});

t.test('a ledger that a crash cut short is read up to its last line', (t) => {
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

t.test('a process is identified by more than its pid', (t) => {
  const self = processName(process.pid)!;
  t.ok(isAlive(self));
  t.notOk(isAlive({ ...self, startTicks: '1' }), 'another process has the pid now');
  t.notOk(isAlive({ ...self, bootId: 'other' }), 'the machine has been restarted');
  t.end();
});
