/** `cp`, with a far end that runs its programs on this machine, and speaks as a gateway does. */
import { spawn } from 'node:child_process';
import { randomBytes } from 'node:crypto';
import { chmodSync, mkdirSync, readdirSync, readFileSync, symlinkSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { WebSocketServer, type WebSocket } from 'ws';
import { placeIn } from '../../../../cli/tenant/sessions/cp.ts';
import { execProtocol } from '../../../../schemas/words.ts';
import { temporaryFolder } from '../../../support/folder.ts';
import { lineAt } from '../../support.ts';

const web = { id: '01a213e1-a50e-7666-936f-479459dfedcf', name: 'web', status: 'running' };

/** Runs the command; what it reads and writes are messages. */
function execute(socket: WebSocket, command: readonly string[], path: string | undefined): void {
  const send = (kind: number, bytes: Buffer): void => socket.send(Buffer.concat([Buffer.of(kind), bytes]));
  const say = (value: object): void => send(3, Buffer.from(JSON.stringify(value)));
  const [program = '', ...args] = command;
  const child = spawn(program, args, { env: { PATH: path } });
  child.once('error', () => {
    send(2, Buffer.from('the container has no such program\n'));
    say({ type: 'exit', code: 127 });
    socket.close(1000);
  });
  child.stdin.on('error', () => {});
  child.stdout.on('data', (bytes: Buffer) => send(1, bytes));
  child.stderr.on('data', (bytes: Buffer) => send(2, bytes));
  socket.on('message', (data: Buffer) => {
    if (data[0] === 3) return child.stdin.end();
    child.stdin.write(data.subarray(1));
    say({ type: 'window', bytes: data.length - 1 });
  });
  child.once('close', (code) => {
    if (code === null || child.pid === undefined) return;
    say({ type: 'exit', code });
    socket.close(1000);
  });
}

/** @param path of the programs that the "container" has */
async function container(t: Test, path = process.env['PATH']) {
  const server = createServer((_request, response) => {
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ data: [web] }));
  });
  const sockets = new WebSocketServer({ server, handleProtocols: () => execProtocol });
  sockets.on('connection', (socket, { url = '' }) =>
    execute(socket, new URL(url, 'http://x').searchParams.getAll('command'), path),
  );
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    sockets.close();
    server.closeAllConnections();
    server.close();
  });
  return lineAt(`http://127.0.0.1:${(server.address() as AddressInfo).port}`);
}

/** A folder of programs of this machine: an image that has no others. */
function programs(t: Test, names: readonly string[]): string {
  const folder = temporaryFolder(t);
  for (const name of names) symlinkSync(`/bin/${name}`, join(folder, name));
  return folder;
}

t.test('a file goes in and comes out, byte for byte', async (t) => {
  const longshore = await container(t);
  const folder = temporaryFolder(t);
  const [here, there, back] = ['here', 'there', 'back'].map((name) => join(folder, name)) as [string, string, string];
  const bytes = randomBytes(3_000_000);
  writeFileSync(here, bytes);
  t.same(await longshore('cp', here, `web:${there}`), { code: 0, out: `2.9 MiB to web:${there}\n`, err: '' });
  t.ok(readFileSync(there).equals(bytes), 'more than a window');
  t.match(await longshore('cp', `web:${there}`, back), { code: 0, out: `2.9 MiB to ${back}\n`, err: '' });
  t.ok(readFileSync(back).equals(bytes));
  t.same(await longshore('cp', `web:${here}`, '-'), { code: 0, out: bytes.toString(), err: '' });
  writeFileSync(here, '');
  t.match(await longshore('cp', here, `web:${there}`), { code: 0, out: /^0 B / });
  t.match(await longshore('cp', `web:${there}`, back), { code: 0, out: /^0 B / });
  t.equal(readFileSync(back).length, 0, 'an empty one, too');
});

t.test('a folder takes the name of the file, and no path is a script', async (t) => {
  const longshore = await container(t);
  const folder = temporaryFolder(t);
  const name = `it's $(touch pwned) "one"`;
  const inside = join(folder, 'inside');
  const outside = join(folder, 'outside');
  for (const one of [inside, outside]) mkdirSync(one);
  writeFileSync(join(folder, name), 'text');
  t.match(await longshore('cp', join(folder, name), `web:${inside}/`), { code: 0 });
  t.match(await longshore('cp', `web:${join(inside, name)}`, outside), { code: 0 });
  t.same(readdirSync(inside), [name]);
  t.same(readdirSync(outside), [name], 'and no part is left');
});

t.test('a copy that fails says why, and leaves nothing', async (t) => {
  const folder = temporaryFolder(t);
  const file = join(folder, 'file');
  writeFileSync(file, 'text');
  const longshore = await container(t);
  const to = join(folder, 'to');
  t.match(await longshore('cp', `web:${folder}/none`, to), { code: 1, err: /nothing was copied: .*No such file/ });
  t.match(await longshore('cp', `web:${folder}`, to), { code: 1, err: /nothing was copied: .* is a folder/ });
  t.match(await longshore('cp', file, `web:${folder}/none/file`), { code: 1, err: /nothing was copied: / });
  t.match(await longshore('cp', join(folder, 'none'), `web:${to}`), { code: 1, err: /can't be read: no such file/ });
  t.match(await longshore('cp', folder, `web:${to}`), { code: 1, err: /is a folder: cp copies one file/ });
  t.match(await longshore('cp', file, to), { code: 2, err: /give a file and a CONTAINER:PATH/ });
  t.match(await longshore('cp', 'web:/a', 'web:/b'), { code: 2, err: /give a file and a CONTAINER:PATH/ });
  t.same(readdirSync(folder), ['file']);
});

t.test('an image without the programs', async (t) => {
  const folder = temporaryFolder(t);
  const file = join(folder, 'file');
  writeFileSync(file, 'text');
  const none = await container(t, programs(t, []));
  t.match(await none('cp', file, `web:${folder}/to`), {
    code: 1,
    err: /the image of web has no sh, by which cp copies/,
  });
  const noCat = await container(t, programs(t, ['sh']));
  t.match(await noCat('cp', file, `web:${folder}/to`), { code: 1, err: /the image of web has no cat, by which cp/ });
  const noSum = await container(t, programs(t, ['sh', 'cat']));
  t.match(await noSum('cp', file, `web:${folder}/to`), { code: 0, err: /no sha256sum: the copy is not checked/ });
  t.equal(readFileSync(join(folder, 'to'), 'utf8'), 'text');
});

t.test('a copy that is not what was sent is refused', async (t) => {
  const folder = temporaryFolder(t);
  const bin = programs(t, ['sh', 'cat']);
  writeFileSync(join(bin, 'sha256sum'), '#!/bin/sh\necho 0000  -\n');
  chmodSync(join(bin, 'sha256sum'), 0o755);
  const longshore = await container(t, bin);
  const file = join(folder, 'file');
  writeFileSync(file, 'text');
  t.match(await longshore('cp', `web:${file}`, join(folder, 'to')), { code: 1, err: /is not what was sent/ });
  t.same(readdirSync(folder), ['file'], 'and is not left here');
});

t.test('arguments that name a path in a container', (t) => {
  t.same(placeIn('web:/etc/motd'), { container: 'web', path: '/etc/motd' });
  t.same(placeIn('web:a:b'), { container: 'web', path: 'a:b' });
  for (const text of ['./a:b', '/a:b', '-', 'file', 'web:']) t.equal(placeIn(text), undefined, text);
  t.end();
});
