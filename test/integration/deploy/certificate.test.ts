/**
 * The key of a NATS server's certificate leaked: a certificate of another authority takes its place
 * while the server runs (docs/runbook.md, "Leaked credentials").
 */
import { copyFileSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { connect, credsAuthenticator, type NatsConnection } from '@nats-io/transport-node';
import t from 'tap';
import { makeNatsCertificates } from '../../../dev/servers/nats-certificates.ts';
import { startNats } from '../../../dev/servers/nats.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { until } from '../../support/until.ts';

t.setTimeout(300_000);

t.test('a reload replaces the certificate, and ends no connection', { timeout: 300_000 }, async (t) => {
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
