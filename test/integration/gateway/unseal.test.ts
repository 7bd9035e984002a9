/** Answers of a gateway to agents that ask for a value (ADR 37), on a real nats-server. */
import { join } from 'node:path';
import { createCurve } from '@nats-io/nkeys';
import t from 'tap';
import { gatewayPermissions } from '../../../ops/nats-keys/permissions.ts';
import { writePrivateFile } from '../../../lib/process/private-file.ts';
import { Vault } from '../../../gateway/vault/vault.ts';
import { networkPlace } from '../../../gateway/vpn/service/networks/authority.ts';
import { newWireguardKeys } from '../../../lib/wireguard-keys.ts';
import type { NetworkName } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { subjects } from '../../../schemas/wire/subjects.ts';
import {
  senderKeyBytes,
  unsealBoxChars,
  type HostProof,
  type UnsealAnswer,
  type UnprovedAsk,
} from '../../../schemas/wire/unseal.ts';
import { containerId, tenantId } from '../../actors/support.ts';
import { memoryOwner, okData, recordingLog, refusal, serveOwner, type AnswerOf } from '../../gateway/support.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { credentialsOfCp } from '../../support/host-user.ts';
import { until } from '../../support/until.ts';
import { hostOn } from '../sessions/support.ts';
import { runGateway, startGround } from './support.ts';
import { protocolFields } from '../../../schemas/wire/version.ts';

const ground = await startGround(t);
const key = { id: 'k1', key: Buffer.alloc(32, 1) };
const vault = new Vault([key]);
const env = { VAULT_KEYS: `k1:${Buffer.from(key.key).toString('base64')}` };
const acme = tenantId('acme');
const wireguard = newWireguardKeys().privateKey;
const place = { of: 'secret', tenant: acme, name: 'db', version: 1 } as const;

let answer: () => AnswerOf | Promise<AnswerOf> = () => refusal('unavailable');
const otherwise = memoryOwner();
/** Networks whose certificates a gateway has looked at. */
const looked: string[] = [];
serveOwner(ground.nc, (ask) => {
  if (ask.type === 'secret.unseal') return answer();
  if (ask.type === 'network.unseal') {
    const sealed = (field: 'wireguard' | 'server', text: string) => vault.seal(networkPlace(ask.network, field), text);
    const ike = { id: 'vpn.example.com', certificate: 'pem', serial: '1a', sealed: sealed('server', 'key') };
    return okData({ sealed: sealed('wireguard', wireguard), ike });
  }
  if (ask.type !== 'network.material') return otherwise(ask);
  looked.push(ask.network);
  return refusal('unavailable');
});

const host = await hostOn(t, ground.nats, 'h1');
const curve = createCurve();
const ask: UnprovedAsk = {
  v: 1,
  ...protocolFields,
  tenant: acme,
  id: containerId(),
  key: curve.getPublicKey(),
  secret: { name: 'db', version: 1 },
};
/** @param proof by default that of the host */
const unseal = async (more: object = {}, proof?: HostProof | null): Promise<UnsealAnswer> => {
  const asked = { ...ask, ...more } as UnprovedAsk;
  const message = JSON.stringify({ ...asked, ...(proof === null ? {} : { proof: proof ?? host.prove(asked) }) });
  return (await host.nc.request(subjects.hostUnseal(host.agent), message, { timeout: 30_000 })).json();
};
const failuresIn = ({ events }: ReturnType<typeof recordingLog>, reason: string) =>
  events.filter(({ event, fields }) => event === 'unseal_failed' && fields?.['reason'] === reason);
function plainOf(answered: UnsealAnswer): Buffer {
  if (!answered.ok || answered.box === null) throw new Error(JSON.stringify(answered));
  const box = Buffer.from(answered.box, 'base64url');
  return Buffer.from(curve.open(box.subarray(senderKeyBytes), box.toString('latin1', 0, senderKeyBytes)) ?? []);
}
function opened(answered: UnsealAnswer): Buffer {
  const { value } = JSON.parse(plainOf(answered).toString()) as { value: string };
  return Buffer.from(value, 'base64');
}

t.test('a gateway with the vault’s keys', async (t) => {
  const log = recordingLog();
  const gateway = await runGateway(t, ground, { env, log });
  const sealed = (bytes: Buffer) => () => okData({ version: 1, sealed: vault.seal(place, bytes) });
  await until('it serves', async () => ((await unseal()).ok ? false : true));

  await t.test('the largest value, of any bytes', async (t) => {
    const bytes = Buffer.from(Array.from({ length: limits.secretBytes }, (_, index) => index % 256));
    answer = sealed(bytes);
    const answers = await Promise.all(Array.from({ length: 20 }, () => unseal()));
    for (const one of answers) t.ok(opened(one).equals(bytes));
    t.ok(answers.every((one) => one.ok && (one.box?.length ?? 0) <= unsealBoxChars));
  });

  await t.test('the owner decides', async (t) => {
    answer = () => ({ code: 'forbidden', body: '{"error":"forbidden","message":"not here"}' });
    t.match(await unseal(), { ok: false, error: 'refused', message: 'not here' });
    answer = () => refusal('not_found');
    t.match(await unseal(), { ok: false, error: 'refused' });
    for (const code of ['unavailable', 'internal'] as const) {
      answer = () => refusal(code);
      t.match(await unseal(), { ok: false, error: 'unavailable' }, code);
    }
    answer = () => okData(null);
    t.match(await unseal({ secret: undefined, registry: 'docker.io' }), { ok: true, box: null });
  });

  await t.test('the key of a network has its certificate looked at, and comes whatever becomes of that', async (t) => {
    const asked = { v: 1, ...protocolFields, key: ask.key, network: 'office' as NetworkName } as const;
    const message = JSON.stringify({ ...asked, proof: host.prove(asked) });
    const subject = subjects.hostUnseal(host.agent);
    const answered: UnsealAnswer = (await host.nc.request(subject, message, { timeout: 30_000 })).json();
    t.match(JSON.parse(plainOf(answered).toString()), {
      key: wireguard,
      ike: { serial: '1a', private_key: 'key' },
    });
    t.same(looked, ['office']);
    t.match(
      log.events.filter(({ event }) => event === 'certificate_renew_failed').map(({ fields }) => fields),
      [{ network: 'office' }],
    );
  });

  await t.test('a value that does not open is no refusal for good', async (t) => {
    const other = new Vault([{ id: 'k2', key: Buffer.alloc(32, 2) }]);
    answer = () => okData({ version: 1, sealed: other.seal(place, 'x') });
    t.match(await unseal(), { ok: false, error: 'unavailable' });
    answer = () => okData({ version: 1, sealed: vault.seal({ ...place, version: 2 }, 'x') });
    t.match(await unseal(), { ok: false, error: 'unavailable' }, 'of another version');
    t.match(
      log.events.filter(({ event }) => event === 'secret_open_failed').map(({ fields }) => fields),
      [{ why: 'unknown_key' }, { why: 'damaged' }],
    );
  });

  await t.test('an ask without a proof opens nothing', async (t) => {
    answer = sealed(Buffer.from('x'));
    t.match(await unseal({}, null), { ok: false, error: 'invalid' });
    t.match(
      failuresIn(log, 'invalid').map(({ fields }) => fields),
      [host.agent],
    );
  });

  await t.test('a proof that does not hold opens nothing, and is logged', async (t) => {
    const proof = host.prove(ask);
    t.match(await unseal({ key: createCurve().getPublicKey() }, proof), {
      ok: false,
      error: 'refused',
      message: /signature/,
    });
    t.match(await unseal({}, { ...proof, atMs: proof.atMs - 2 * limits.unsealSkewMs }), {
      ok: false,
      error: 'refused',
      message: /clock/,
    });
    t.match(
      failuresIn(log, 'forged').map(({ fields }) => fields),
      [{ ...host.agent, tenant: acme, container: ask.id, why: /signature/ }],
      'one line, and the next one counts the others',
    );
  });

  await t.test('it is counted, and what has arrived is answered at the end', async (t) => {
    const metrics = await gateway.registry.metrics();
    t.match(metrics, /longshore_gateway_unseals_total\{result="sealed"\} 21/);
    t.match(metrics, /longshore_gateway_unseals_total\{result="refused"\} 2/);
    t.match(metrics, /longshore_gateway_unseals_total\{result="invalid"\} 1/);
    t.match(metrics, /longshore_gateway_unseals_total\{result="forged"\} 2/);
    let isAsked: () => void = () => {};
    const asked = new Promise<void>((resolve) => (isAsked = resolve));
    let goOn: (answered: AnswerOf) => void = () => {};
    answer = () => {
      isAsked();
      return new Promise<AnswerOf>((resolve) => (goOn = resolve));
    };
    const last = unseal();
    await asked;
    const stopped = gateway.stop();
    goOn(sealed(Buffer.from('late'))());
    t.equal(opened(await last).toString(), 'late');
    await stopped;
  });
});

/** Credentials of a gateway that may not hear agents. */
async function narrowCredentials(folder: string): Promise<string> {
  const credentials = await credentialsOfCp(ground.nats.credsFile, (publicKey) => {
    const { sub, ...others } = gatewayPermissions(publicKey);
    return { ...others, sub: { allow: (sub?.allow ?? []).filter((subject) => !subject.startsWith('agent.')) } };
  });
  const path = join(folder, 'narrow.creds');
  writePrivateFile(path, Buffer.from(credentials).toString());
  return path;
}

t.test('a gateway that may not hear agents says that it does not serve hosts, and serves the rest', async (t) => {
  const log = recordingLog();
  const NATS_CREDS_FILE = await narrowCredentials(temporaryFolder(t));
  const { url } = await runGateway(t, ground, { env: { ...env, NATS_CREDS_FILE }, log });
  await until('a line in the log', () => failuresIn(log, 'unavailable').length > 0);
  const headers = { authorization: `Bearer ${await ground.issuer.mint()}` };
  t.equal((await fetch(`${url}/api/v2/compute/secrets`, { headers })).status, 200);
});

t.test('a gateway without the account HOSTS says so, and leaves the asks to others', async (t) => {
  const log = recordingLog();
  const gateway = await runGateway(t, ground, { env: { ...env, HOSTS_ACCOUNT_FILE: '' }, log });
  t.match(
    failuresIn(log, 'unavailable').map(({ fields }) => fields),
    [{ why: 'HOSTS_ACCOUNT_FILE is not set', todo: /nats-keys/ }],
  );
  await t.rejects(unseal(), /no responders/);
  await gateway.stop();
});
