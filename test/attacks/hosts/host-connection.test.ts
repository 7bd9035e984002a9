/**
 * A hostile host uses its own credentials at the NATS server: it subscribes without end, sends
 * messages as large as the server takes, and connects to the ports for browsers and for other
 * servers. The server must refuse this, and continue to serve the control plane.
 */
import { readFileSync, writeFileSync } from 'node:fs';
import { once } from 'node:events';
import { connect as dial, type Socket } from 'node:net';
import { join } from 'node:path';
import { connect, credsAuthenticator, jwtAuthenticator } from '@nats-io/transport-node';
import { createUser } from '@nats-io/nkeys';
import { fmtCreds } from '@nats-io/jwt';
import t from 'tap';
import { launchNats, natsConfiguration, natsGreets } from '../../../dev/servers/nats.ts';
import { prepareNatsIdentity } from '../../../ops/nats-keys/nats-identity.ts';
import { mintHostUserJwt } from '../../support/host-user.ts';
import { freePort, onFreePort, type Server } from '../../../dev/process/process.ts';
import { toolHere } from '../../../dev/fetch/tools.ts';
import { sleep, within } from '../../../lib/time/backoff.ts';
import { limits } from '../../../schemas/limits.ts';
import { temporaryFolder } from '../../support/folder.ts';

t.setTimeout(300_000);

const deadlineMs = 60_000;
const MiB = 1024 * 1024;

async function answers(port: number, signal: AbortSignal): Promise<boolean> {
  const socket = dial({ port, host: '127.0.0.1' });
  try {
    return await natsGreets(socket, signal);
  } finally {
    socket.destroy();
  }
}

/** Text that the server sends until the connection ends. */
async function saidBy(socket: Socket): Promise<string> {
  let said = '';
  socket.on('data', (chunk: Buffer) => (said += chunk.toString('latin1')));
  await new Promise<void>((resolve) => socket.once('close', () => resolve()));
  return said;
}

/** The nonce that a client has to sign. */
async function nonceFrom(socket: Socket): Promise<string> {
  for (let said = ''; ;) {
    const [chunk] = (await within(once(socket, 'data'), deadlineMs, 'the greeting')) as [Buffer];
    said += chunk.toString('latin1');
    const nonce = /"nonce":"([^"]+)"/.exec(said)?.[1];
    if (nonce !== undefined) return nonce;
  }
}

/** A WebSocket message (RFC 6455, 5.2): binary, final, masked with zeros. */
function frame(text: string): Buffer {
  const head = Buffer.alloc(8);
  head.writeUInt16BE(0x82fe, 0);
  head.writeUInt16BE(text.length, 2);
  return Buffer.concat([head, Buffer.from(text)]);
}

t.test('resources of the NATS server that a hostile host can use', { timeout: 300_000 }, async (t) => {
  const tool = await toolHere('nats-server');
  const folder = temporaryFolder(t);
  const identity = await prepareNatsIdentity(join(folder, 'keys'));
  const [browserPort, leafPort] = [await freePort(), await freePort()];
  /**
   * A configuration that an operator may have: large messages for other users, and ports for
   * browsers and other servers.
   */
  const start = async (port: number): Promise<{ server: Server; port: number }> => ({
    port,
    server: await launchNats({
      name: 'nats-server',
      tool,
      folder,
      configuration: natsConfiguration({
        name: 'attacked',
        address: '127.0.0.1',
        port,
        storeDir: join(folder, 'jetstream'),
        accountsDir: join(folder, 'accounts'),
        identity,
        more: [
          `max_payload: ${8 * MiB}`,
          `websocket { listen: "127.0.0.1:${browserPort}", no_tls: true }`,
          `leafnodes { listen: "127.0.0.1:${leafPort}" }`,
        ],
      }),
      port,
      ready: (signal) => answers(port, signal),
    }),
  });
  const { port, server } = await onFreePort(start);
  t.teardown(() => server.stop());
  const url = `nats://127.0.0.1:${port}`;
  const user = createUser();
  const key = user.getPublicKey();
  const jwt = await mintHostUserJwt({
    hostKey: 'h1',
    publicKey: key,
    hostsAccount: identity.hostsAccount,
    hostsSigningSeed: readFileSync(identity.hostsSigningSeedFile, 'utf8'),
  });
  const authenticator = jwtAuthenticator(jwt, user.getSeed());
  const cp = await connect({ servers: url, authenticator: credsAuthenticator(readFileSync(identity.cpCredsFile)) });
  t.teardown(() => cp.close());
  const connectLine = (nonce: string): string => {
    const sig = Buffer.from(user.sign(new TextEncoder().encode(nonce))).toString('base64url');
    return `CONNECT ${JSON.stringify({ jwt, sig, protocol: 1, verbose: false, pedantic: false, lang: 'x', version: '1' })}\r\n`;
  };
  const attack = () => connect({ servers: url, authenticator, inboxPrefix: `_INBOX_${key}`, reconnect: false });

  await t.test('ten thousand subscriptions', async (t) => {
    const nc = await attack();
    t.teardown(() => nc.close());
    const errors: string[] = [];
    void (async () => {
      for await (const status of nc.status()) if (status.type === 'error') errors.push(status.error.message);
    })();
    let isOver = false;
    for (let index = 0; index < 10_000 && !isOver; index++) {
      try {
        nc.subscribe(`_INBOX_${key}.${index}`, { callback: () => {} });
      } catch {
        isOver = true;
      }
    }
    const endMs = performance.now() + deadlineMs;
    while (!nc.isClosed() && !/maximum subscriptions/i.test(errors.join()) && performance.now() < endMs)
      await sleep(50);
    t.match(errors.join(' '), /maximum subscriptions exceeded/i);
    const held = await cp.request('$JS.API.INFO', '', { timeout: 30_000 });
    t.ok(held.data.length > 0, 'the server still serves the control plane');
  });

  await t.test('messages as large as the server takes', async (t) => {
    // The library keeps to the maximum that the server announces; an attacker does not.
    for (const bytes of [limits.hostPayloadBytes + 1, 7 * MiB]) {
      const socket = dial({ port, host: '127.0.0.1' });
      t.teardown(() => socket.destroy());
      const said = saidBy(socket);
      socket.write(connectLine(await nonceFrom(socket)));
      socket.write(`PUB agent.h1.${key}.beat ${bytes}\r\n`);
      t.match(await within(said, deadlineMs, 'the end'), /Maximum Payload Violation/i, `${bytes} bytes`);
    }
    const nc = await attack();
    t.teardown(() => nc.close());
    const taken = new Promise<number>((resolve) => {
      cp.subscribe('agent.*.*.beat', { callback: (_, { data }) => resolve(data.length), max: 1 });
    });
    await cp.flush();
    nc.publish(`agent.h1.${key}.beat`, new Uint8Array(limits.hostPayloadBytes));
    t.equal(
      await within(taken, deadlineMs, 'the largest message'),
      limits.hostPayloadBytes,
      'the server takes messages up to the bound',
    );
  });

  await t.test('the port for browsers', async (t) => {
    const socket = dial({ port: browserPort, host: '127.0.0.1' });
    t.teardown(() => socket.destroy());
    const said = saidBy(socket);
    const upgrade = 'Upgrade: websocket\r\nConnection: Upgrade\r\nSec-WebSocket-Version: 13';
    socket.write(`GET / HTTP/1.1\r\nHost: x\r\n${upgrade}\r\nSec-WebSocket-Key: ${'A'.repeat(22)}==\r\n\r\n`);
    socket.write(frame(connectLine(await nonceFrom(socket))));
    t.match(await within(said, deadlineMs, 'the end'), /Authorization Violation/i);
  });

  await t.test('a server of its own, as a leaf of the account', async (t) => {
    const leafFolder = temporaryFolder(t);
    const creds = join(leafFolder, 'host.creds');
    writeFileSync(creds, fmtCreds(jwt, user));
    const leaf = await onFreePort(async (ownPort: number) => ({
      server: await launchNats({
        name: 'leaf',
        tool,
        folder: leafFolder,
        configuration: [
          `listen: "127.0.0.1:${ownPort}"`,
          `leafnodes { remotes: [ { url: "nats://127.0.0.1:${leafPort}", credentials: ${JSON.stringify(creds)} } ] }`,
        ].join('\n'),
        port: ownPort,
        ready: (signal) => answers(ownPort, signal),
      }),
    }));
    t.teardown(() => leaf.server.stop());
    const endMs = performance.now() + deadlineMs;
    const refused = /maximum account leafnode connections|authorization violation|authentication error/i;
    const logOf = () => readFileSync(leaf.server.logFile, 'utf8');
    while (!refused.test(logOf()) && performance.now() < endMs) await sleep(50);
    t.match(logOf(), refused);
  });
});
