/** Names of registries resolve as the engine resolves them, and a slow one delays nothing else. */
import { createSocket } from 'node:dgram';
import { once, setMaxListeners } from 'node:events';
import { readFileSync, writeFileSync } from 'node:fs';
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { addressesIn, createResolve } from '../../../host-agent/images/resolve.ts';
import { temporaryFolder } from '../../support/folder.ts';

const typeA = 1;
const typeAaaa = 28;

/** `silent.*` gets no answer; `broken6.*` gets a server failure for IPv6. */
const records: Readonly<Record<string, { readonly a?: readonly number[]; readonly aaaa?: readonly number[] }>> = {
  'both.example': { a: [1, 1, 1, 1], aaaa: [0x26, 0x06, 0x47, 0, ...Array<number>(11).fill(0), 1] },
  'four.example': { a: [1, 1, 1, 2] },
  'broken6.example': { a: [1, 1, 1, 3] },
  'listed.example': { a: [1, 1, 1, 4] },
};

/** A minimal name server (RFC 1035). */
async function startNameServer(t: Test) {
  const asked: string[] = [];
  const socket = createSocket('udp4');
  socket.on('message', (query, from) => {
    const labels: string[] = [];
    let at = 12;
    for (let size = query[at]!; size > 0; size = query[at]!) {
      labels.push(query.toString('latin1', at + 1, at + 1 + size));
      at += 1 + size;
    }
    const name = labels.join('.');
    const type = query.readUInt16BE(at + 1);
    asked.push(name);
    if (name.startsWith('silent')) return;
    const known = records[name];
    const data = type === typeA ? known?.a : type === typeAaaa ? known?.aaaa : undefined;
    const code = name.startsWith('broken6') && type === typeAaaa ? 2 : known === undefined ? 3 : 0;
    const head = Buffer.from([
      query[0]!,
      query[1]!,
      0x81,
      0x80 | code,
      0,
      1,
      0,
      data === undefined ? 0 : 1,
      0,
      0,
      0,
      0,
    ]);
    const record = data === undefined ? [] : [0xc0, 12, 0, type, 0, 1, 0, 0, 0, 0, 0, data.length, ...data];
    socket.send(Buffer.concat([head, query.subarray(12, at + 5), Buffer.from(record)]), from.port, from.address);
  });
  socket.bind(0, '127.0.0.1');
  await once(socket, 'listening');
  t.teardown(() => socket.close());
  return { server: `127.0.0.1:${socket.address().port}`, asked };
}

async function startGround(t: Test) {
  const { server, asked } = await startNameServer(t);
  const hostsFile = join(temporaryFolder(t), 'hosts');
  writeFileSync(hostsFile, '127.0.0.1 localhost\n10.0.0.5 listed.example # inside\n');
  return { asked, resolve: createResolve({ hostsFile, servers: [server] }) };
}

const never = new AbortController().signal;

t.test('IPv4 and IPv6 addresses, with those of the hosts file first', async (t) => {
  const { resolve, asked } = await startGround(t);
  t.same(await resolve('both.example', never), ['1.1.1.1', '2606:4700::1']);
  t.same(await resolve('four.example', never), ['1.1.1.2']);
  t.same(await resolve('absent.example', never), []);
  t.same(await resolve('listed.example', never), ['10.0.0.5'], 'the hosts file comes before DNS');
  t.notOk(asked.includes('listed.example'));
  await t.rejects(resolve('broken6.example', never), { code: 'ESERVFAIL' }, 'there may be an unknown address');
});

t.test('names without an answer delay neither files nor other names, and time out', async (t) => {
  const { resolve, asked } = await startGround(t);
  const giveUp = new AbortController();
  setMaxListeners(64, giveUp.signal);
  const ended: string[] = [];
  const slow = Array.from({ length: 32 }, async (_, index) => {
    await t.rejects(resolve(`silent${index}.example`, giveUp.signal), { code: 'ECANCELLED' });
    ended.push(`silent${index}`);
  });
  while (new Set(asked).size < slow.length) await new Promise((resolve) => setTimeout(resolve, 10));
  t.equal((await readFile(import.meta.filename)).length, readFileSync(import.meta.filename).length);
  t.same(await resolve('four.example', never), ['1.1.1.2']);
  t.same(ended, [], 'the slow ones are still pending');
  giveUp.abort();
  await Promise.all(slow);
  await t.rejects(resolve('four.example', giveUp.signal));
});

t.test('the hosts file is read as the engine reads it', (t) => {
  const hosts =
    '#10.0.0.1 a.example\n10.0.0.2\tA.example b.example\n::1 a.example\nfe80::1%eth0 a.example\nx a.example\n';
  t.same(addressesIn(hosts, 'a.EXAMPLE'), ['10.0.0.2', '::1', 'fe80::1']);
  t.same(addressesIn(hosts, 'example'), []);
  t.end();
});
