/**
 * IKEv2 connects with downloaded files, with strongSwan on both sides: the operator downloads the
 * server's, a device its own by token.
 */
import t, { type Test } from 'tap';
import { passwordPlaceholder } from '../../../gateway/vpn/render/strongswan/swanctl.ts';
import { eventually } from '../support/eventually.ts';
import { ikev2Tools, startStrongswan, windowsLike, type Attempt } from './ikev2.ts';
import { createNetwork, skipWithoutNetwork, wire } from './netns.ts';
import { attachmentName, startVpnRig, type NewPeer, type VpnRig } from './rig.ts';
import { revokedSerials } from './revocations.ts';

const network = 'office';
/** The server's addresses in the pools. */
const inside = ['10.86.0.1', 'fd86::1'] as const;
const answerS = 10;
/** Enough for five packets; over a working route one gets through. */
const silenceS = 1;
const updateDeadlineMs = 15_000;
const gcm = { ike: 'AES_GCM_16-256/PRF_HMAC_SHA2_384/ECP_384', esp: ['AES_GCM_16-256'] };
const cbc = {
  ike: 'AES_CBC-256/HMAC_SHA2_256_128/PRF_HMAC_SHA2_256/MODP_2048',
  esp: ['AES_CBC-256/HMAC_SHA2_256_128'],
};

const operatorFile = async (rig: VpnRig, name: string): Promise<string> => {
  const answer = await rig.operator.call('GET', `/api/v2/operator/networks/${network}/${name}`);
  if (answer.status !== 200) throw new Error(`${name}: ${answer.status} ${answer.text}`);
  return answer.text;
};

const connections = (rig: VpnRig): Promise<string> => operatorFile(rig, 'swanctl.conf');
const revocations = async (rig: VpnRig): Promise<Buffer> => (await rig.file(`/api/forage/crl/${network}`)).bytes;

/** Waits, because the owner of the peer updates the network soon after it has answered. */
const connectionsWhere = (rig: VpnRig, what: string, check: (conf: string) => boolean): Promise<string> =>
  eventually(what, () => connections(rig), check, updateDeadlineMs);

const revocationsWhere = async (rig: VpnRig, serial: string, is: boolean): Promise<Buffer> => {
  const look = async (): Promise<{ der: Buffer; serials: string[] }> => {
    const der = await revocations(rig);
    return { der, serials: await revokedSerials(der) };
  };
  const what = `${serial} is ${is ? '' : 'not '}revoked`;
  return (await eventually(what, look, ({ serials }) => serials.includes(serial) === is, updateDeadlineMs)).der;
};
const revocationsWith = (rig: VpnRig, serial: string): Promise<Buffer> => revocationsWhere(rig, serial, true);
const revocationsWithout = (rig: VpnRig, serial: string): Promise<Buffer> => revocationsWhere(rig, serial, false);

/** The files that a device has downloaded; the configuration names the bundle. */
interface Downloads {
  readonly p12: Buffer;
  readonly p12Name: string;
  readonly conf: string;
  readonly password: string;
  readonly localId: string;
}

async function download(rig: VpnRig, peer: NewPeer, encryption = 'compat'): Promise<Downloads> {
  const token = `token=${peer.download_token}`;
  const p12 = await rig.file(`/api/forage/p12/${peer.id}?encryption=${encryption}&${token}`);
  const conf = await rig.file(`/api/forage/profile/${peer.id}?format=swanctl&${token}`);
  return {
    p12: p12.bytes,
    p12Name: attachmentName(p12),
    conf: conf.text.replace(passwordPlaceholder, peer.p12_password),
    password: peer.p12_password,
    localId: `${peer.id}.${network}.internal`,
  };
}

t.setTimeout(150_000);
const skip = await skipWithoutNetwork(...ikev2Tools, 'openssl');

t.test('IKEv2 connections', { skip }, async (t) => {
  const rig = await startVpnRig(t);
  const acme = await rig.client('acme');
  await rig.network({
    name: network,
    endpoint: wire.server.ipv4,
    ipv4_pool: '10.86.0.0/24',
    ipv6_pool: 'fd86::/64',
    dns: ['10.86.0.1'],
  });
  const make = (name: string): Promise<NewPeer> => rig.peer(acme, { name, network });
  const [laptop, windows, lost, spare] = [
    await make('laptop'),
    await make('windows pc'),
    await make('lost'),
    await make('spare'),
  ];
  const everybody = [laptop, windows, lost, spare];

  const wires = await createNetwork(t, ...ikev2Tools);
  // strongSwan assigns addresses to devices; the operator configures those of the server.
  for (const address of inside) await wires.server.must('ip', ['address', 'add', address, 'dev', 'lo']);
  const server = await startStrongswan(wires.server, {
    'x509ca/office-ca.pem': await operatorFile(rig, 'ca.pem'),
    'x509/office.pem': await operatorFile(rig, 'server.pem'),
    'private/office.pem': await operatorFile(rig, 'server-key.pem'),
    'conf.d/office.conf': await connectionsWhere(rig, 'all peers are on the server', (conf) =>
      everybody.every(({ id }) => conf.includes(id)),
    ),
  });
  const client = await startStrongswan(wires.client, {});

  const serve = async (files: { conf?: string; list?: Buffer }): Promise<void> => {
    if (files.conf !== undefined) server.put({ 'conf.d/office.conf': files.conf });
    if (files.list !== undefined) server.put({ 'x509crl/office.crl': files.list });
    await server.loadAll();
  };
  /** Tries to connect from a client that has these files and no others. */
  const attempt = async (t: Test, { conf, p12, p12Name }: Downloads): Promise<Attempt> => {
    const bundle = `pkcs12/${p12Name}`;
    client.put({ 'conf.d/office.conf': conf, [bundle]: p12 });
    await client.loadAllAfresh();
    const startMs = performance.now();
    const outcome = await client.initiate('home');
    t.comment(`${outcome.connected ? 'connected' : 'refused'} after ${Math.round(performance.now() - startMs)} ms`);
    client.put({ [bundle]: undefined });
    return outcome;
  };
  const connect = async (t: Test, files: Downloads): Promise<void> => {
    const { connected, output } = await attempt(t, files);
    t.ok(connected, connected ? 'the device connects' : output);
    for (const address of inside) t.ok(await wires.client.ping(address, answerS), `${address} answers`);
  };
  const disconnect = async (): Promise<void> => {
    for (const { connection } of await client.associations()) await client.terminate(connection);
  };
  /** Checks the reason in the server's log, because the client does not learn it. */
  const refused = async (t: Test, files: Downloads, why: RegExp): Promise<void> => {
    const before = server.log().length;
    const { connected, output } = await attempt(t, files);
    t.notOk(connected, connected ? output : 'the device is refused');
    t.match(output, /AUTHENTICATION_FAILED/);
    t.match(server.log().slice(before), why);
    t.notOk(await wires.client.ping(inside[0], silenceS), 'nothing answers');
  };

  await t.test('without a revocation list no device connects', async (t) => {
    await serve({});
    await refused(t, await download(rig, laptop), /certificate status is not available/);
    await serve({ list: await revocations(rig) });
  });

  for (const encryption of ['compat', 'modern']) {
    await t.test(`${encryption} bundle`, async (t) => {
      await connect(t, await download(rig, laptop, encryption));
      t.match(await client.associations(), [gcm]);
      const [there, ...others] = await server.associations();
      t.same(others, []);
      t.match(there, { connection: `peer-${laptop.id}`, ...gcm });
      for (const address of [laptop.ipv4, laptop.ipv6])
        t.match(there?.text, address ?? 'none', 'the device has its own address');
      await disconnect();
      for (const address of inside) t.notOk(await wires.client.ping(address, silenceS), `${address} is silent`);
    });
  }

  await t.test('a device with the proposals of Windows connects', async (t) => {
    const files = await download(rig, windows);
    const conf = windowsLike({ server: wire.server.ipv4, file: files.p12Name, ...files });
    await connect(t, { ...files, conf });
    t.match(await server.associations(), [{ connection: `peer-${windows.id}-dn`, ...cbc }]);
    await disconnect();
  });

  await t.test('the revocation list alone refuses a removed device', async (t) => {
    const files = await download(rig, lost);
    await connect(t, files);
    await disconnect();
    t.equal((await acme.call('DELETE', `/api/forage/peers/${lost.id}`)).status, 204);
    // swanctl.conf is not updated, so the device's connection stays configured.
    await serve({ list: await revocationsWith(rig, lost.certificate.serial) });
    await refused(t, files, /certificate was revoked on .*reason: cessation of operation/);
    await connect(t, await download(rig, laptop));
    await disconnect();
  });

  await t.test('after a rotation the new bundle connects and the old one does not', async (t) => {
    const old = await download(rig, laptop);
    const answer = await acme.call<{ data: NewPeer }>('POST', `/api/forage/peers/${laptop.id}/rotate`);
    t.equal(answer.status, 200);
    await serve({ list: await revocationsWith(rig, laptop.certificate.serial), conf: await connections(rig) });
    await refused(t, old, /certificate was revoked/);
    await connect(t, await download(rig, { ...laptop, ...answer.body.data }));
    await disconnect();
  });

  await t.test('the server has no connection for a disabled device; enabled, it connects again', async (t) => {
    const set = async (enabled: boolean): Promise<string> => {
      const answer = await acme.call('PATCH', `/api/forage/peers/${spare.id}`, { enabled });
      t.equal(answer.status, 200, `enabled: ${enabled}`);
      return connectionsWhere(rig, `enabled: ${enabled}`, (conf) => conf.includes(spare.id) === enabled);
    };
    const files = await download(rig, spare);
    await connect(t, files);
    // The revocation list is not updated and does not name the device.
    await serve({ conf: await set(false) });
    t.match(await server.associations(), [{ connection: `peer-${spare.id}` }], 'an established connection stays');
    await server.endRemoved();
    t.same(await server.associations(), [], 'the documented command ends it');
    t.notOk(await wires.client.ping(inside[0], silenceS), 'nothing answers');
    await disconnect();
    await refused(t, files, /no matching peer config found/);

    await serve({ list: await revocationsWith(rig, spare.certificate.serial) });
    await serve({ conf: await set(true) });
    await refused(t, files, /certificate was revoked on .*reason: certificate hold/);
    await serve({ list: await revocationsWithout(rig, spare.certificate.serial) });
    await connect(t, files);
    await disconnect();
  });
});
