import { createServer } from 'node:net';
import { join } from 'node:path';
import t from 'tap';
import { judgeTenantNetwork, seeSocket } from '../../../host-agent/doctor/tenant-network.ts';
import { temporaryFolder } from '../../support/folder.ts';

const socket = '/run/longshore-net/net.sock';
const meshAt = { address: '192.0.2.7', port: 51_820 };
const judge = (more: Partial<Parameters<typeof judgeTenantNetwork>[0]>) =>
  judgeTenantNetwork({ NET_SOCKET: socket, MESH: 'on', MESH_ADDRESS: meshAt, error: undefined, ...more });

t.test('findings, and what to do', async (t) => {
  t.match(judge({}), [
    { check: 'tenant network', verdict: 'ok' },
    { check: 'mesh', verdict: 'ok', says: /192\.0\.2\.7:51820/ },
  ]);
  t.match(judge({ NET_SOCKET: undefined }), [{ verdict: 'ok', says: /NET_SOCKET is not set/ }]);
  t.match(judge({ error: 'ENOENT' }), [
    { verdict: 'fail', says: /does not answer.*ENOENT/, remedy: /start longshore-net/ },
  ]);
  t.match(judge({ error: 'EACCES' }), [{ verdict: 'fail', says: /may not write/, remedy: /group/ }]);
  t.match(judge({ MESH_ADDRESS: undefined })[1], { verdict: 'warn', remedy: /set MESH_ADDRESS/ });
  t.match(judge({ MESH: 'off' })[1], { verdict: 'ok', says: /off/ });
  t.match(judge({ MESH_ADDRESS: { address: '2001:db8::7', port: 1 } })[1], { says: /\[2001:db8::7\]:1/ });
});

t.test('a socket that takes connections, and one that is not there', async (t) => {
  const path = join(temporaryFolder(t), 's');
  t.equal(await seeSocket(path), 'ENOENT');
  const server = createServer((connection) => connection.destroy());
  await new Promise<void>((resolve) => server.listen(path, resolve));
  t.equal(await seeSocket(path), undefined);
  server.close();
});
