/**
 * A neighbour on the network of the gateways can write to their Redis with the gateways' own
 * password, or answers in its place. No tenant may lose its access, and no owner and no gateway may
 * be overloaded.
 */
import { once } from 'node:events';
import { createServer, type AddressInfo, type Socket } from 'node:net';
import { join } from 'node:path';
import { Redis } from 'ioredis';
import t from 'tap';
import { makeNatsCertificates } from '../../../dev/servers/nats-certificates.ts';
import { startRedis, type Redis as RedisServer } from '../../../dev/servers/redis.ts';
import { readClusterEntry } from '../../../lib/nats/cluster-record.ts';
import { isRestoring } from '../../../schemas/records/cluster.ts';
import { limits } from '../../../schemas/limits.ts';
import { partitionOf } from '../../../schemas/wire/subjects.ts';
import type { TenantId } from '../../../schemas/ids.ts';
import type { Revocation } from '../../../schemas/api/tenant.ts';
import { memoryOwner, recordingLog, revocationsOf, serveOwner } from '../../gateway/support.ts';
import { runGateway, startGround } from '../../integration/gateway/support.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { until } from '../../support/until.ts';

// Before the first test: tap ends a file that has a teardown and nothing to do for a moment.
const ground = await startGround(t);
const { entry } = await readClusterEntry(ground.nc);
const clusterId = entry === undefined || isRestoring(entry) ? '' : entry.id;
const channel = `longshore.${clusterId}.revoked`;
const folder = temporaryFolder(t);
const redis = await startRedis({ folder: join(folder, 'redis') });
t.teardown(() => redis.stop());

let questions = 0;
let revoked: Revocation[] = [];
const owner = memoryOwner();
serveOwner(ground.nc, (ask) => {
  if (ask.type !== 'revocation.list') return owner(ask);
  questions++;
  return revocationsOf(revoked.filter(({ tenant }) => partitionOf(tenant, ground.partitions) === ask.partition));
});

const statusOf = async (url: string, token: string): Promise<number> => {
  const response = await fetch(`${url}/api/v2/compute`, { headers: { authorization: `Bearer ${token}` } });
  await response.text();
  return response.status;
};
const intruderOn = ({ port, password }: RedisServer): Redis =>
  new Redis({ port, username: 'gateway', password, disableClientInfo: true, protocol: 2 });
const intruder = intruderOn(redis);
t.teardown(() => intruder.disconnect());
const ofTenant = (tenant: string): Revocation => ({
  tenant: tenant as TenantId,
  match: { by: 'tenant' },
  issuedUntilS: 10 ** 10,
  untilMs: 10 ** 13,
});

t.test('a forged message makes the gateway ask the owners, at a limited rate, and refuses no token', async (t) => {
  const log = recordingLog();
  const { url } = await runGateway(t, ground, { env: redis.settings, log });
  await until('connected', () => log.events.filter(({ event }) => event === 'redis_connected').length === 2);
  const token = await ground.issuer.mint({ tenant_id: 'victim' });
  t.equal(await statusOf(url, token), 200);

  const [askedBefore, startMs] = [questions, performance.now()];
  const forged = [JSON.stringify(ofTenant('victim')), '0', '3', '999', '-1', 'x'.repeat(1000), ''];
  for (let round = 0; round < 100; round++) {
    const heard = await Promise.all(forged.map((text) => intruder.publish(channel, text)));
    if (heard.some((gateways) => gateways !== 1)) t.fail('the gateway was not listening');
  }
  await until('the owners are asked', () => questions > askedBefore);
  t.equal(await statusOf(url, token), 200);
  const asked = questions - askedBefore;
  const most = ground.partitions * (2 + (performance.now() - startMs) / limits.revocationDoorbellMs);
  t.ok(asked <= most, `${asked} questions to owners for 700 messages, at most ${most}`);

  revoked = [ofTenant('victim')];
  await intruder.publish(channel, String(partitionOf('victim', ground.partitions)));
  await until('what the owner says is believed', async () => (await statusOf(url, token)) === 401);
  revoked = [];
});

t.test('after a flood of doorbells the gateway pauses, then asks all owners', async (t) => {
  const log = recordingLog();
  const { url } = await runGateway(t, ground, { env: redis.settings, log });
  await until('connected', () => log.events.filter(({ event }) => event === 'redis_connected').length === 2);
  const token = await ground.issuer.mint({ tenant_id: 'flooded' });
  const isLeft = (): boolean => log.events.some(({ event }) => event === 'redis_disconnected');
  await until('the gateway leaves', async () => {
    await Promise.all(Array.from({ length: 5000 }, () => intruder.publish(channel, '1')));
    return isLeft();
  });
  t.equal(await statusOf(url, token), 200);
  revoked = [ofTenant('flooded')];
  await until('asked after the pause', async () => (await statusOf(url, token)) === 401);
  revoked = [];
});

t.test('forged counts leave a tenant its share of the rate', async (t) => {
  const env = { ...redis.settings, RATE_LIMIT_TENANT_PER_SECOND: '1', RATE_LIMIT_TENANT_BURST: '200' };
  const log = recordingLog();
  const { url } = await runGateway(t, ground, { env, log });
  await until('connected', () => log.events.filter(({ event }) => event === 'redis_connected').length === 2);
  const token = await ground.issuer.mint({ tenant_id: 'counted' });
  const key = `longshore:${clusterId}:rate:counted`;
  const sum = (): Promise<number> => intruder.incrby(key, 0);
  t.equal(await statusOf(url, token), 200);
  await until('the sum is known', async () => (await sum()) > 0);
  const forged = await intruder.incrby(key, 1e9);
  t.equal(await statusOf(url, token), 200);
  await until('the forged sum was read', async () => (await sum()) > forged);
  const statuses: number[] = [];
  for (let request = 0; request < 15; request++) statuses.push(await statusOf(url, token));
  t.ok(
    statuses.every((status) => status === 200),
    `${statuses.join(' ')}`,
  );
  await until('beyond its share it is limited', async () => (await statusOf(url, token)) === 429);
  t.equal(await statusOf(url, await ground.issuer.mint({ tenant_id: 'other' })), 200);
});

t.test('a server in place of Redis cannot fill the gateway’s memory', async (t) => {
  let taken = 0;
  const most = 64 * 1024 * 1024;
  const flood = (socket: Socket): void => {
    const chunk = Buffer.alloc(65_536, 'x');
    socket.write(`*3\r\n$7\r\nmessage\r\n$${channel.length}\r\n${channel}\r\n$536870912\r\n`);
    const more = (): void => {
      while (!socket.destroyed && taken < most) {
        taken += chunk.length;
        if (!socket.write(chunk)) return void socket.once('drain', more);
      }
    };
    more();
  };
  let closed = 0;
  const impostor = createServer((socket) => {
    socket.on('error', () => {});
    socket.on('close', () => closed++);
    socket.on('data', (data) => {
      const command = data.toString();
      if (/auth/i.test(command)) socket.write('+OK\r\n');
      if (/info/i.test(command)) socket.write('$15\r\nredis_version:7\r\n');
      if (/subscribe/i.test(command)) {
        socket.write(`*3\r\n$9\r\nsubscribe\r\n$${channel.length}\r\n${channel}\r\n:1\r\n`);
        flood(socket);
      }
    });
  });
  impostor.listen(0, '127.0.0.1');
  await once(impostor, 'listening');
  t.teardown(() => impostor.close());
  const log = recordingLog();
  const env = { REDIS_URL: `redis://127.0.0.1:${(impostor.address() as AddressInfo).port}` };
  const { url } = await runGateway(t, ground, { env, log });
  await until('left, or all is taken', () => closed > 0 || taken >= most);
  t.ok(taken < most, `left after ${taken} bytes`);
  t.match(
    log.events.find(({ event }) => event === 'redis_disconnected'),
    { fields: { role: 'subscriber', why: 'a reply that does not end' } },
  );
  t.ok(
    log.events.some(({ event }) => event === 'redis_unprotected'),
    'a Redis without a password is named in the log',
  );
  t.equal(await statusOf(url, await ground.issuer.mint()), 200);
});

t.test('answers of other kinds in place of counts change nothing', async (t) => {
  const kinds = {
    'names of prototypes': '$9\r\n__proto__\r\n',
    'a list of prototypes': '*2\r\n$9\r\n__proto__\r\n$11\r\nconstructor\r\n',
    nothing: '$-1\r\n',
    'the largest number': ':9223372036854775807\r\n',
    'less than nothing': ':-9223372036854775808\r\n',
    'an error': '-WRONGTYPE Operation against a key holding the wrong kind of value\r\n',
    'no type of the protocol': '!junk\r\n',
    'lists within lists': '*1\r\n'.repeat(50_000),
  };
  for (const [name, answer] of Object.entries(kinds)) {
    let counted = 0;
    const impostor = createServer((socket) => {
      socket.on('error', () => {});
      socket.on('data', (data) => {
        for (const [, command = ''] of data
          .toString()
          .matchAll(/\r\n(info|auth|incrby|expire|subscribe|publish)\r\n/gi)) {
          const word = command.toLowerCase();
          if (word === 'info') socket.write('$15\r\nredis_version:7\r\n');
          else if (word === 'auth') socket.write('+OK\r\n');
          else if (word === 'subscribe') {
            socket.write(`*3\r\n$9\r\nsubscribe\r\n$${channel.length}\r\n${channel}\r\n:1\r\n`);
          } else {
            counted++;
            socket.write(answer);
          }
        }
      });
    });
    impostor.listen(0, '127.0.0.1');
    await once(impostor, 'listening');
    t.teardown(() => impostor.close());
    const env = { REDIS_URL: `redis://127.0.0.1:${(impostor.address() as AddressInfo).port}` };
    const { url } = await runGateway(t, ground, { env });
    const token = await ground.issuer.mint({ tenant_id: 'plain' });
    await until('the answer has come', async () => {
      t.equal(await statusOf(url, token), 200, name);
      return counted > 2;
    });
    t.equal(await statusOf(url, token), 200, name);
  }
  t.notOk('polluted' in {});
});

t.test('Redis allows nothing without the password, and with it only a gateway’s commands', async (t) => {
  const stranger = new Redis({
    port: redis.port,
    protocol: 2,
    disableClientInfo: true,
    enableReadyCheck: false,
    retryStrategy: () => null,
  });
  stranger.on('error', () => {});
  t.teardown(() => stranger.disconnect());
  await t.rejects(stranger.publish(channel, '0'), /NOAUTH/);
  for (const [command, ...args] of [
    ['flushall'],
    ['keys', '*'],
    ['config', 'get', '*'],
    ['publish', 'other', 'x'],
    ['incrby', 'other', '1'],
    ['client', 'kill', 'type', 'normal'],
    ['set', `longshore:${clusterId}:rate:acme`, '__proto__'],
    ['eval', 'return 1', '0'],
    ['script', 'load', 'return 1'],
    ['function', 'list'],
    ['subscribe', 'other'],
  ] as const) {
    await t.rejects(intruder.call(command, ...args), /NOPERM/, command);
  }
});

t.test('with TLS, the gateway refuses a certificate of another authority', async (t) => {
  const place = [{ name: 'redis', address: '127.0.0.1' }];
  const ours = await makeNatsCertificates(join(folder, 'tls'), place);
  const others = await makeNatsCertificates(join(folder, 'other-tls'), place);
  const { certFile, keyFile } = ours.servers[0]!;
  const secured = await startRedis({
    folder: join(folder, 'redis-tls'),
    listen: (port) => [
      'port 0',
      `tls-port ${port}`,
      `tls-cert-file ${certFile}`,
      `tls-key-file ${keyFile}`,
      'tls-auth-clients no',
    ],
  });
  t.teardown(() => secured.stop());
  const run = async (caFile: string) => {
    const log = recordingLog();
    await runGateway(t, ground, { env: { ...secured.settings, REDIS_CA_FILE: caFile }, log });
    await until('known', () =>
      log.events.some(({ event }) => event === 'redis_connected' || event === 'redis_unreachable'),
    );
    return log.events;
  };
  t.ok((await run(ours.caFile)).some(({ event }) => event === 'redis_connected'));
  const refused = await run(others.caFile);
  t.notOk(refused.some(({ event }) => event === 'redis_connected'));
  t.match(
    refused.find(({ event }) => event === 'redis_unreachable'),
    { fields: { error: { message: /certificate/ } } },
  );
});
