/** Requests of an agent and its operator: enrolment, and readiness. */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Test } from 'tap';
import type { Nats } from '../../../dev/servers/nats.ts';
import { decoder } from '../../../lib/decode.ts';
import { EnrolBody } from '../../../schemas/api/host.ts';
import { host } from './control-plane-state.ts';

export const joinToken = `lsj_${host}_${'x'.repeat(43)}`;
const decodeEnrol = decoder(EnrolBody);

export async function startEnrolment(
  t: Test,
  nats: Nats,
  cluster: string,
  jwtFor: (publicKey: string) => Promise<string>,
): Promise<string> {
  const server = createServer((request, response) => {
    if (request.url === '/readyz') return void response.end();
    const chunks: Buffer[] = [];
    request.on('data', (chunk: Buffer) => chunks.push(chunk));
    request.on('end', () => {
      const { join_token, public_key } = decodeEnrol(Buffer.concat(chunks));
      if (request.url !== '/api/v2/hosts/enrol' || join_token !== joinToken) {
        response.writeHead(401).end('{"error":"unauthenticated"}');
        return;
      }
      void jwtFor(public_key).then((jwt) => {
        const data = { host, region: 'default', cluster, natsUrls: [nats.url], jwt };
        response.writeHead(201, { 'content-type': 'application/json' }).end(JSON.stringify({ data }));
      });
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => new Promise((resolve) => server.close(resolve)));
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
}
