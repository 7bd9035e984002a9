/** A program whose credentials a real NATS server refuses, or whose server is away for a while. */
import { readFileSync } from 'node:fs';
import { createUser } from '@nats-io/nkeys';
import t from 'tap';
import { startNats } from '../../../dev/servers/nats.ts';
import type { Fields, Log } from '../../../lib/log.ts';
import { connectNats, credentialsFile } from '../../../lib/nats/connection.ts';
import { jwtAuthenticator } from '../../../lib/nats/quick-pair.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { mintHostUserJwt } from '../../support/host-user.ts';
import { until } from '../../support/until.ts';

t.setTimeout(150_000);

function recorded() {
  const lines: { readonly event: string; readonly fields: Fields }[] = [];
  const note = (event: string, fields: Fields = {}): void => void lines.push({ event, fields });
  const log: Log = { debug: note, info: note, warn: note, error: note, child: () => log };
  const of = (event: string) => lines.filter((line) => line.event === event);
  return { log, of };
}

t.test('credentials that end are offered ever more rarely, and used again once they are new', async (t) => {
  const nats = await startNats({ dir: temporaryFolder(t) });
  t.teardown(() => nats.stop());
  const user = createUser();
  const hosts = { hostsAccount: nats.hostsAccount, hostsSigningSeed: readFileSync(nats.hostsSigningSeedFile, 'utf8') };
  const jwtUntil = (expiresAtS: number): Promise<string> =>
    mintHostUserJwt({ hostKey: 'h1', publicKey: user.getPublicKey(), ...hosts, expiresAtS });
  const nowS = Math.floor(Date.now() / 1000);
  let jwt = await jwtUntil(nowS + 3);
  let asked = 0;
  const authenticator = jwtAuthenticator(() => {
    asked++;
    return jwt;
  }, user.getSeed());
  const { log, of } = recorded();
  let refused = 0;
  const onRefused = (): void => void refused++;
  const nc = await connectNats({ servers: [nats.url], name: 'test', authenticator, onRefused }, log);
  t.teardown(() => nc.close());
  await until('an end of the credentials', () => of('nats_refused').length > 0);
  asked = 0;
  await sleep(10_000);
  // Without a back-off it would be some forty.
  t.ok(asked >= 1 && asked <= 8, `${asked} dials in ten seconds`);
  await until('refusals that are told', () => refused >= 3);
  // A server takes credentials for the whole of the second in which they end, and ends them again
  // at once: how often that happens within the second is chance. Afterwards it takes them no more.
  const back = of('nats_reconnected').length;
  const losses = of('nats_disconnected').length;
  t.equal(losses, back + 1, 'one line for each loss');
  t.ok(of('nats_refused').length <= 2 * losses, 'one line for each thing that the server says');
  t.equal(of('nats_error').length, 0);
  t.ok(of('nats_refused').every(({ fields }) => !('error' in fields) && typeof fields['reason'] === 'string'));
  jwt = await jwtUntil(nowS + 3600);
  await until('a connection', () => of('nats_reconnected').length === back + 1);
});

t.test('before the first connection, too', async (t) => {
  const nats = await startNats({ dir: temporaryFolder(t) });
  t.teardown(() => nats.stop());
  const user = createUser();
  const hosts = { hostsAccount: nats.hostsAccount, hostsSigningSeed: readFileSync(nats.hostsSigningSeedFile, 'utf8') };
  const mint = (expiresAtS: number) =>
    mintHostUserJwt({ hostKey: 'h1', publicKey: user.getPublicKey(), ...hosts, expiresAtS });
  let jwt = await mint(Math.floor(Date.now() / 1000) - 10);
  const { log, of } = recorded();
  let refused = 0;
  const authenticator = jwtAuthenticator(() => jwt, user.getSeed());
  const onRefused = (): void => void refused++;
  const connecting = connectNats({ servers: [nats.url], name: 'test', authenticator, onRefused }, log);
  await until('refusals', () => refused >= 3);
  t.equal(of('nats_refused').length, 1);
  jwt = await mint(Math.floor(Date.now() / 1000) + 3600);
  await (await connecting).close();
});

t.test('gateways and actors are back soon after a server was away', async (t) => {
  const nats = await startNats({ dir: temporaryFolder(t) });
  t.teardown(() => nats.stop());
  const { log, of } = recorded();
  const credentials = { authenticator: credentialsFile(nats.credsFile) };
  const nc = await connectNats({ servers: [nats.url], name: 'test', isUrgent: true, ...credentials }, log);
  t.teardown(() => nc.close());
  await nats.kill9();
  await sleep(5_000);
  t.equal(of('nats_disconnected').length, 1, 'once, however often it was dialled');
  await nats.restart();
  // test/lib/nats/dials.test.ts has the pauses between the dials.
  await until('a connection', () => of('nats_reconnected').length === 1);
});
