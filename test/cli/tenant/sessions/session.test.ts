import { once } from 'node:events';
import { createServer } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import t from 'tap';
import { Output } from '../../../../cli/terminal/output.ts';
import { createApi } from '../../../../cli/client/api.ts';
import type { Context } from '../../../../cli/context.ts';
import { openSession } from '../../../../cli/tenant/sessions/session.ts';
import { within } from '../../../../lib/time/backoff.ts';

t.test('a session that is refused leaves no connection, which the process would wait for', async (t) => {
  const connections: Socket[] = [];
  const gateway = createServer({ keepAliveTimeout: 60_000 }, (_request, response) => {
    response.writeHead(409, { 'content-type': 'application/json' });
    response.end(JSON.stringify({ error: 'conflict', message: 'the container does not run: it is stopped' }));
  });
  gateway.on('connection', (socket: Socket) => connections.push(socket));
  gateway.listen(0, '127.0.0.1');
  await once(gateway, 'listening');
  t.teardown(() => {
    gateway.closeAllConnections();
    gateway.close();
  });
  const server = `http://127.0.0.1:${(gateway.address() as AddressInfo).port}`;
  const { env, stdin } = process;
  const [stdout, stderr] = [new Output(process.stdout), new Output(process.stderr)];
  const { signal } = new AbortController();
  const context: Context = {
    api: createApi({ server }),
    server,
    token: 'token',
    format: 'table',
    isJson: false,
    terminal: { env, stdin, stdout, stderr, signal, nowMs: () => 0 },
    show: () => undefined,
    tell: () => undefined,
  };
  const refused = openSession(context, '/api/v2/compute/x/exec', 'longshore.exec.v1');
  await t.rejects(refused, { message: 'the container does not run: it is stopped' });
  const [connection] = connections;
  if (connection === undefined) return t.fail('nobody has connected');
  if (!connection.destroyed) await within(once(connection, 'close'), 10_000, 'the end of the connection');
  t.pass('it has ended');
});
