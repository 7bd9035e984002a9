/**
 * A neighbour on the network has a certificate of the authority that clients trust, valid for both
 * ends of a connection, and starts a NATS server that names one of ours as its route. A server of
 * the cluster can read and write everything, so this one must not become a member.
 */
import { readFileSync } from 'node:fs';
import { connect as connectPlain } from 'node:net';
import { join } from 'node:path';
import { connect as connectTls } from 'node:tls';
import t from 'tap';
import { launchNats, natsConfiguration, natsGreets, natsLogFile } from '../../../dev/servers/nats.ts';
import { makeNatsCertificates } from '../../../dev/servers/nats-certificates.ts';
import { prepareNatsIdentity } from '../../../ops/nats-keys/nats-identity.ts';
import { freePort } from '../../../dev/process/process.ts';
import { toolHere } from '../../../dev/fetch/tools.ts';
import { connectNats } from '../../../lib/nats/connection.ts';
import { quietLog } from '../../gateway/support.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { until } from '../../support/until.ts';

const folder = temporaryFolder(t);
const tool = await toolHere('nats-server');
const identity = await prepareNatsIdentity(join(folder, 'keys'));
const address = '127.0.0.1';
const { routesCaFile, servers } = await makeNatsCertificates(join(folder, 'tls'), [
  { name: 'n1', address },
  { name: 'n2', address },
]);
const [ours, theirs] = [servers[0]!, servers[1]!];
const clusterPort = await freePort();

interface Route {
  readonly certFile: string;
  readonly keyFile: string;
  readonly caFile: string;
}

async function start(name: string, port: number, listen: number, route: Route) {
  const greets = async (signal: AbortSignal): Promise<boolean> => {
    const socket = connectPlain({ port, host: address });
    try {
      return await natsGreets(socket, signal);
    } finally {
      socket.destroy();
    }
  };
  const configuration = natsConfiguration({
    name,
    address,
    port,
    storeDir: join(folder, name, 'jetstream'),
    accountsDir: join(folder, name, 'accounts'),
    identity,
    more: [
      'cluster {',
      '  name: longshore',
      `  listen: "${address}:${listen}"`,
      `  routes: ["nats://${address}:${clusterPort}"]`,
      '  pool_size: -1',
      '  tls {',
      `    cert_file: ${JSON.stringify(route.certFile)}`,
      `    key_file: ${JSON.stringify(route.keyFile)}`,
      `    ca_file: ${JSON.stringify(route.caFile)}`,
      '    verify: true',
      '  }',
      '}',
    ],
  });
  const server = await launchNats({ name, tool, folder: join(folder, name), configuration, port, ready: greets });
  t.teardown(() => server.stop());
  return server;
}

t.test('only a certificate of the routes’ authority makes a server of the cluster', async (t) => {
  const port = await freePort();
  await start('n1', port, clusterPort, { ...ours.route, caFile: routesCaFile });
  const link = { servers: [`nats://${address}:${port}`], name: 'test', credsFile: identity.sysCredsFile };
  const system = await connectNats(link, quietLog);
  t.teardown(() => system.close());
  const names = async (): Promise<string[]> => {
    const found: string[] = [];
    const bounds = { strategy: 'stall', stall: 300, maxWait: 5_000 } as const;
    for await (const answer of await system.requestMany('$SYS.REQ.SERVER.PING', '', bounds)) {
      found.push(answer.json<{ server: { name: string } }>().server.name);
    }
    return found.sort();
  };
  const logged = (): string => readFileSync(natsLogFile(join(folder, 'n1')), 'utf8');

  // The foreign server trusts our authority of routes, as anyone may.
  const foreign = { certFile: theirs.certFile, keyFile: theirs.keyFile, caFile: routesCaFile };
  const rogue = await start('rogue', await freePort(), await freePort(), foreign);
  await until('the refusal', () => /TLS route handshake error/.test(logged()));
  t.same(await names(), ['n1']);
  await rogue.stop();

  // A nats-server does not send a certificate that the other end would not accept; an attacker's
  // own program may.
  const [cert, key] = [readFileSync(theirs.certFile), readFileSync(theirs.keyFile)];
  const forced = connectTls({ port: clusterPort, host: address, cert, key, rejectUnauthorized: false });
  t.teardown(() => forced.destroy());
  forced.on('error', () => {});
  await until('it is refused too', () => /certificate signed by unknown authority/.test(logged()));

  await start('n2', await freePort(), await freePort(), { ...theirs.route, caFile: routesCaFile });
  await until('a server with the right certificate joins', async () => (await names()).includes('n2'));
});
