/**
 * A tenant has the engine send requests into the host's network: it names an address of the host as
 * its registry, and reads the answer in its container's status. The agent asks no such registry,
 * and reports no text of an engine.
 */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { startRig } from '../../host-agent/support/rig.ts';

const secret = 'password-of-the-neighbour';

/** A service of the host that answers every request with its secret, and counts the requests. */
async function startNeighbour(t: Test): Promise<{ readonly port: number; asked(): number }> {
  let asked = 0;
  const server: Server = createServer((_, response) => {
    asked += 1;
    response.writeHead(401, { 'content-type': 'application/json', 'www-authenticate': `Basic realm="${secret}"` });
    response.end(JSON.stringify({ errors: [{ code: 'UNAUTHORIZED', message: secret, detail: secret }] }));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return { port: (server.address() as AddressInfo).port, asked: () => asked };
}

t.test('a registry that is an address of the host', async (t) => {
  const { controlPlane, agent } = await startRig(t);
  const neighbour = await startNeighbour(t);
  const allowed = await startNeighbour(t);
  // The default configuration, except that one port of loopback is allowed.
  const process = agent({ REGISTRIES_ALLOWED: `public,127.0.0.1:${allowed.port}` });

  const ways = [
    `127.0.0.1:${neighbour.port}`,
    `localhost:${neighbour.port}`,
    `127.1:${neighbour.port}`,
    '169.254.169.254',
    '10.0.0.1:6379',
  ];
  for (const registry of ways) {
    const { id } = controlPlane.desire({ registry, repository: 'a/b', tag: '1' });
    const { observation } = await controlPlane.reported(id, (item) => item.observation.status === 'failed');
    t.match(observation, { reason: 'registry_not_allowed', message: /not allowed on this host/ }, registry);
  }
  t.equal(neighbour.asked(), 0, 'the engine asked no registry');

  const { id } = controlPlane.desire({ registry: `127.0.0.1:${allowed.port}`, repository: 'a/b', tag: '1' });
  const { observation } = await controlPlane.reported(id, (item) => item.observation.status === 'failed');
  t.match(observation, { reason: 'image_auth', message: 'the registry refuses access to this image' });
  t.ok(allowed.asked() > 0, 'the engine asks a registry that the operator allows');
  t.notMatch(JSON.stringify(controlPlane.reports(id)), secret, 'and none of its words are reported');
  await process.logged('step_taken', (line) => String(line['detail']).includes('auth'));
});
