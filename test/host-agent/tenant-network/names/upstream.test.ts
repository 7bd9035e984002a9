/** The name servers of the host, as a resolver asks them, over real sockets. */
import { createSocket, type Socket } from 'node:dgram';
import { once } from 'node:events';
import { createServer, type AddressInfo, type Server } from 'node:net';
import * as dns from 'dns-packet';
import t, { type Test } from 'tap';
import { framed, framesOf } from '../../../../host-agent/tenant-network/names/frames.ts';
import { Upstream, type UpstreamOptions } from '../../../../host-agent/tenant-network/names/upstream.ts';

const source = 'fd5e::1';
const query = (name: string): Buffer =>
  dns.encode({ type: 'query', id: 7, flags: dns.RECURSION_DESIRED, questions: [{ type: 'A', name }] });
const answerTo = (asked: Buffer, more: Partial<dns.Packet> = {}): Buffer => {
  const { id, questions = [] } = dns.decode(asked);
  return dns.encode({
    type: 'response',
    id,
    questions,
    answers: [{ type: 'A', name: 'x', data: '192.0.2.1' }],
    ...more,
  });
};

/** Binds both to one free port; where another program has it for UDP, to another one. */
async function bindBoth(connections: Server, datagrams: Socket, attempts = 20): Promise<number> {
  connections.listen(0, '127.0.0.1');
  await once(connections, 'listening');
  const { port } = connections.address() as AddressInfo;
  datagrams.bind(port, '127.0.0.1');
  try {
    await once(datagrams, 'listening');
    return port;
  } catch (error) {
    if (attempts === 1 || (error as NodeJS.ErrnoException).code !== 'EADDRINUSE') throw error;
    connections.close();
    await once(connections, 'close');
    return bindBoth(connections, datagrams, attempts - 1);
  }
}

/** A name server on loopback with scripted answers over UDP; over TCP it answers correctly. */
async function nameServer(t: Test, react: (asked: Buffer) => readonly Buffer[]) {
  let asked = 0;
  const connections = createServer((socket) => {
    socket.on('error', () => undefined);
    void (async () => {
      for await (const message of framesOf(socket)) socket.write(framed(answerTo(message)));
    })().catch(() => undefined);
  });
  t.teardown(() => connections.close());
  const datagrams = createSocket('udp4');
  t.teardown(() => datagrams.close());
  datagrams.on('message', (message: Buffer, { port, address }) => {
    asked++;
    for (const answer of react(message)) datagrams.send(answer, port, address);
  });
  const port = await bindBoth(connections, datagrams);
  return { port, asked: () => asked };
}

const asking = (port: number, more: Partial<UpstreamOptions> = {}): Upstream =>
  new Upstream({
    servers: () => ['127.0.0.1'],
    port,
    ofOne: 2,
    ofAll: 3,
    serverMs: 30_000,
    deadlineMs: 60_000,
    ...more,
  });

t.test('an answer comes back with the number of the query, over UDP and TCP', async (t) => {
  const { port } = await nameServer(t, (asked) => [answerTo(asked)]);
  for (const transport of ['udp', 'tcp'] as const) {
    const heard = await asking(port).ask(query('example.com'), source, transport);
    t.match(heard instanceof Buffer && dns.decode(heard), { id: 7, answers: [{ data: '192.0.2.1' }] }, transport);
  }
});

t.test('answers to other questions, and with other numbers, are not taken', async (t) => {
  const { port } = await nameServer(t, (asked) => {
    const forged = answerTo(asked, { answers: [{ type: 'A', name: 'x', data: '203.0.113.9' }] });
    const numbered = Buffer.from(forged);
    numbered.writeUInt16BE((forged.readUInt16BE() + 1) % 2 ** 16);
    const another = answerTo(asked, { questions: [{ type: 'A', name: 'evil.example' }] });
    return [numbered, another, Buffer.from('short'), asked, answerTo(asked)];
  });
  const heard = await asking(port).ask(query('example.com'), source, 'udp');
  t.match(heard instanceof Buffer && dns.decode(heard), { answers: [{ data: '192.0.2.1' }] });
});

t.test('a server that is silent is left for the next, and all of them for nothing', async (t) => {
  const { port } = await nameServer(t, (asked) => [answerTo(asked)]);
  const servers = ['127.0.0.2', '127.0.0.1'];
  const heard = await asking(port, { servers: () => servers, serverMs: 300 }).ask(query('example.com'), source, 'tcp');
  t.ok(heard instanceof Buffer);
  const silent = await nameServer(t, () => []);
  const quick = { serverMs: 50, deadlineMs: 100 };
  t.equal(await asking(silent.port, quick).ask(query('example.com'), source, 'udp'), 'silent');
  t.equal(await asking(port, { servers: () => [] }).ask(query('example.com'), source, 'udp'), 'silent');
});

t.test('a container has few questions at a time, and all of them have a bound', async (t) => {
  const silent = await nameServer(t, () => []);
  const upstream = asking(silent.port, { serverMs: 500, deadlineMs: 500 });
  const ask = (from: string) => upstream.ask(query('example.com'), from, 'udp');
  const first = [ask('a'), ask('a')];
  t.equal(await ask('a'), 'full', 'of one');
  const second = ask('b');
  t.equal(await ask('c'), 'full', 'of all');
  t.same(await Promise.all([...first, second]), ['silent', 'silent', 'silent']);
  t.equal(await ask('a'), 'silent', 'when they are over, it may ask again');
});
