/** Health checks over the network, against real servers. */
import { createServer as createHttp } from 'node:http';
import { createServer, type AddressInfo, type Server } from 'node:net';
import t, { type Test } from 'tap';
import { probe } from '../../../host-agent/health/probe.ts';
import { healthDefaults } from '../../../schemas/api/policy.ts';
import { collectGarbage } from '../../support/garbage.ts';

async function listening(t: Test, server: Server): Promise<number> {
  server.listen(0, '127.0.0.1');
  await new Promise((resolve) => server.once('listening', resolve));
  t.teardown(() => server.close());
  return (server.address() as AddressInfo).port;
}

const host = '127.0.0.1';
const never = new AbortController().signal;
const timing = { ...healthDefaults, timeout: 60 };

t.test('http: an answer of 200 to 399 passes', async (t) => {
  const asked: (string | undefined)[] = [];
  const port = await listening(
    t,
    createHttp((request, response) => {
      asked.push(request.url);
      if (request.url !== '/hangs') response.writeHead(Number(request.url?.slice(1)), { location: '/500' }).end('x');
    }),
  );
  const ask = (path: string, timeout = timing.timeout) =>
    probe({ ...timing, timeout, http: { port, path } }, { host, port }, never);
  t.equal(await ask('/200'), undefined);
  t.equal(await ask('/302'), undefined, 'a redirect is an answer, and is not followed');
  t.equal(await ask('/404'), `GET /404 on port ${port} answered 404`);
  t.equal(await ask('/503'), `GET /503 on port ${port} answered 503`);
  t.same(asked, ['/200', '/302', '/404', '/503']);
  const hanging = ask('/hangs', 1);
  await collectGarbage();
  t.equal(await hanging, `GET /hangs on port ${port} had no answer in 1 s`);
});

t.test('http: what is no HTTP fails', async (t) => {
  const port = await listening(
    t,
    createServer((socket) => socket.end('hello\n')),
  );
  t.match(await probe({ ...timing, http: { port, path: '/' } }, { host, port }, never), `GET / on port ${port}: HPE_`);
});

t.test('tcp: that the port opens is enough', async (t) => {
  const server = createServer();
  const port = await listening(t, server);
  const check = { ...timing, tcp: { port } };
  t.equal(await probe(check, { host, port }, never), undefined);
  server.close();
  await new Promise((resolve) => server.once('close', resolve));
  t.equal(await probe(check, { host, port }, never), `port ${port}: nothing listens there`);
});

t.test('a check ends at once when its container does', async (t) => {
  const port = await listening(t, createServer());
  const abort = new AbortController();
  const asked = probe({ ...timing, timeout: 300, http: { port, path: '/' } }, { host, port }, abort.signal);
  abort.abort();
  t.type(await asked, 'string');
});
