/**
 * The key of a certificate leaked, of a NATS server or of the proxy: a certificate of another
 * authority takes its place while the server runs (docs/runbook.md, "Leaked credentials").
 */
import { once } from 'node:events';
import { copyFileSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer, type ServerResponse } from 'node:http';
import { request } from 'node:https';
import type { IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { connect, credsAuthenticator, type NatsConnection } from '@nats-io/transport-node';
import t from 'tap';
import { makeNatsCertificates } from '../../../dev/servers/nats-certificates.ts';
import { startNats } from '../../../dev/servers/nats.ts';
import { startProxy } from '../../attacks/http/haproxy.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { skipWithoutTools } from '../../support/tools.ts';
import { until } from '../../support/until.ts';

t.setTimeout(300_000);

t.test('a NATS server: a reload replaces the certificate, and ends no connection', { timeout: 300_000 }, async (t) => {
  const dir = temporaryFolder(t);
  const place = [{ name: 'localhost', address: '127.0.0.1' }];
  const [leaked, next] = [
    await makeNatsCertificates(join(dir, 'leaked'), place),
    await makeNatsCertificates(join(dir, 'next'), place),
  ];
  const [certFile, keyFile] = [join(dir, 'n1.pem'), join(dir, 'n1.key')];
  const install = ({ servers: [pair] }: typeof leaked): void => {
    copyFileSync(pair!.certFile, certFile);
    copyFileSync(pair!.keyFile, keyFile);
  };
  install(leaked);
  const tls = ['tls {', `  cert_file: ${JSON.stringify(certFile)}`, `  key_file: ${JSON.stringify(keyFile)}`, '}'];
  const nats = await startNats({ dir: join(dir, 'nats'), more: () => tls });
  t.teardown(() => nats.stop());
  const by = async (caFile: string): Promise<NatsConnection> => {
    const authenticator = credsAuthenticator(readFileSync(nats.credsFile));
    const nc = await connect({ servers: nats.url, authenticator, reconnect: false, timeout: 20_000, tls: { caFile } });
    t.teardown(() => nc.close());
    return nc;
  };
  const before = await by(leaked.caFile);

  install(next);
  process.kill(nats.server().pid, 'SIGHUP'); // `nats-server --signal reload`
  await until('a connection by the new authority', async () => by(next.caFile).then(() => true));
  await t.rejects(by(leaked.caFile), /certificate/i, 'the server has no certificate of the old authority');
  await before.flush();
  t.notOk(before.isClosed(), 'what was connected is connected');
});

t.test(
  'the proxy: a reload replaces the certificate, and ends no stream',
  { skip: await skipWithoutTools('haproxy'), timeout: 120_000 },
  async (t) => {
    const dir = temporaryFolder(t);
    const place = [{ name: 'localhost', address: '127.0.0.1' }];
    const [leaked, next] = [
      await makeNatsCertificates(join(dir, 'leaked'), place),
      await makeNatsCertificates(join(dir, 'next'), place),
    ];
    const certificateFile = join(dir, 'api.pem');
    const install = ({ servers: [pair] }: typeof leaked): void =>
      writeFileSync(certificateFile, `${readFileSync(pair!.certFile, 'utf8')}${readFileSync(pair!.keyFile, 'utf8')}`);
    install(leaked);

    const streams: ServerResponse[] = [];
    const gateway = createServer((asked, response) => {
      if (asked.url !== '/stream') return void response.end('{}');
      streams.push(response);
      response.write('first');
    });
    await new Promise<void>((resolve) => gateway.listen(0, '127.0.0.1', resolve));
    t.teardown(() => {
      gateway.closeAllConnections();
      gateway.close();
    });
    const { port } = gateway.address() as AddressInfo;
    const { url, pid } = await startProxy(t, `127.0.0.1:${port}`, { certificateFile });
    const get = async (path: string, caFile: string): Promise<IncomingMessage> => {
      const asking = request(`${url}${path}`, { ca: readFileSync(caFile), agent: false });
      asking.end();
      const [response] = (await once(asking, 'response')) as [IncomingMessage];
      return response;
    };
    const statusBy = async (caFile: string): Promise<number | undefined> => {
      const response = await get('/readyz', caFile);
      response.resume();
      return response.statusCode;
    };
    await until('ready', async () => (await statusBy(leaked.caFile)) === 200);
    const stream = await get('/stream', leaked.caFile);
    const heard: string[] = [];
    stream.setEncoding('utf8').on('data', (text: string) => heard.push(text));
    await until('the start of the stream', () => heard.join('') === 'first');

    install(next);
    process.kill(pid, 'SIGUSR2'); // `systemctl reload haproxy`
    await until('an answer by the new authority', async () => statusBy(next.caFile).then((status) => status === 200));
    await t.rejects(statusBy(leaked.caFile), /certificate/i, 'the proxy has no certificate of the old authority');
    streams[0]!.end(' second');
    await once(stream, 'end');
    t.equal(heard.join(''), 'first second', 'a stream from before the reload goes on to its end');
  },
);
