/**
 * A device that comes by IKEv2, as a phone's own client does, to a network that a host of the
 * cluster serves: it has its files from the API alone, and the host's strongSwan what it needs from
 * the control plane.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { PeerView } from '../../../schemas/api/peer.ts';
import { toolHere } from '../../../dev/fetch/tools.ts';
import { shortTemporaryRoot } from '../../../dev/paths.ts';
import { freePort } from '../../../dev/process/process.ts';
import { run } from '../../../dev/process/run.ts';
import { passwordPlaceholder } from '../../../gateway/vpn/render/strongswan/swanctl.ts';
import { createMachine } from '../../support/machine.ts';
import { eventually } from '../support/eventually.ts';
import { hostKey } from '../support/hosts.ts';
import { imageRunning } from '../support/images.ts';
import { startRig } from '../support/rig.ts';
import { ikev2Tools, startStrongswan } from '../vpn/ikev2.ts';
import { mountOf, skipWithoutNetwork } from '../vpn/netns.ts';
import { answering, port, small, tenantNetwork } from './tenant.ts';

t.setTimeout(300_000);
const deadlineMs = 20_000;
/** Of the wire between the device and the host (RFC 5737). */
const [hostAt, deviceAt] = ['198.51.120.1', '198.51.120.2'];

const hearing = (address: string): string =>
  `require('net').connect(${port}, '${address}').on('data', (data) => process.stdout.write(data))` +
  `.on('error', (error) => process.stdout.write('error ' + error.code)).setTimeout(3000, function () { this.destroy() })`;
const resolving = (server: string, name: string): string =>
  `const r = new (require('dns').promises.Resolver)(); r.setServers(['${server}']);` +
  `r.resolve4('${name}').then((all) => console.log(all.join()), (error) => console.log(error.code))`;

const needed = [...ikev2Tools, 'wg', 'wireguard-go', 'nft'] as const;
t.test('a device that comes by IKEv2', { skip: await skipWithoutNetwork(...needed) }, async (t) => {
  const folder = mkdtempSync(join(shortTemporaryRoot(), 'longshore-ike-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  const tools = await Promise.all((['ip', 'ping', ...ikev2Tools] as const).map((name) => toolHere(name)));
  const mounts = tools.flatMap(mountOf);
  const rig = await startRig(t, {
    hasNetwork: true,
    gateway: { VAULT_KEYS: `k1:${randomBytes(32).toString('base64')}` },
    agent: { USAGE_INTERVAL: '500ms', USAGE_REPORT_INTERVAL: '500ms' },
    net: { NET_VICI: join(folder, 'host', 'vici') },
  });
  const host = await createMachine(t, {
    name: 'host',
    folder: join(folder, 'host'),
    tools,
    mounts,
    sharesNetwork: true,
  });
  const ports = { ike: await freePort(), natt: await freePort() };
  const daemon = await startStrongswan(host, {}, ports);

  const image = await imageRunning(rig, answering);
  const [acme, operator] = [await rig.client('acme'), await rig.client('ops', 'operator')];
  const { attached, ipv4Of, addressOf } = tenantNetwork(rig);
  const [store] = await acme.createRunning([
    { name: 'store', ...image, ...small, env: { NAME: 'store' }, host_key: hostKey },
  ]);
  if (store === undefined) throw new Error('no container');
  await attached(acme, store);
  const networks = '/api/v2/operator/networks';
  const settings = {
    ...{ name: 'office', endpoint: hostAt, wireguard_port: await freePort(), tenants: ['acme'] },
    ...{ ipv4_pool: '10.120.0.0/24', ipv6_pool: 'fd20::/64' },
  };
  t.equal((await operator.call('POST', networks, settings)).status, 201);
  t.equal((await operator.call('PUT', `${networks}/office/servers`, { host_keys: [hostKey] })).status, 200);

  interface Made extends PeerView {
    readonly download_token: string;
    readonly p12_password: string;
  }
  const made = await acme.call<{ data: Made }>('POST', '/api/forage/peers', { name: 'phone', network: 'office' });
  t.equal(made.status, 201, made.text);

  const device = await createMachine(t, { name: 'device', folder: join(folder, 'device'), tools, mounts });
  const wire = `lsw${device.pid}`;
  const ip = async (...args: readonly string[]): Promise<void> => {
    const ran = await run('ip', args, { deadlineMs });
    if (ran.code !== 0) throw new Error(`ip ${args.join(' ')}: ${ran.stderr}`);
  };
  await ip('link', 'add', wire, 'type', 'veth', 'peer', 'name', 'wire', 'netns', String(device.pid));
  t.teardown(() => run('ip', ['link', 'delete', wire], { deadlineMs }));
  await ip('address', 'add', `${hostAt}/24`, 'dev', wire);
  await ip('link', 'set', wire, 'up');
  await device.must('ip', ['address', 'add', `${deviceAt}/24`, 'dev', 'wire']);
  await device.must('ip', ['link', 'set', 'wire', 'up']);

  const standIns = async (): Promise<string[]> => {
    const { stdout } = await run('ip', ['-j', 'link', 'show', 'type', 'bridge'], { deadlineMs });
    const links = JSON.parse(stdout) as { ifname: string; ifalias?: string }[];
    return links.filter(({ ifalias }) => ifalias === `longshore ${rig.network?.router}`).map(({ ifname }) => ifname);
  };
  t.teardown(async () => {
    for (const name of await standIns()) await ip('link', 'delete', name);
  });
  const swan = await startStrongswan(device, {});
  /** Puts the files of the peer on the device. */
  const install = async ({ id, download_token: token, p12_password: password }: Made): Promise<void> => {
    const get = (path: string) => fetch(`${rig.baseUrl}${path}token=${token}`);
    const p12 = Buffer.from(await (await get(`/api/forage/p12/${id}?`)).arrayBuffer());
    const conf = await (await get(`/api/forage/profile/${id}?format=swanctl&`)).text();
    const [, bundle = ''] = /file = (\S+)/.exec(conf) ?? [];
    swan.put({
      [`pkcs12/${bundle}`]: p12,
      'conf.d/office.conf': conf
        .replace(passwordPlaceholder, password)
        .replace('remote_addrs', `local_port = 4500\n  remote_port = ${ports.natt}\n  remote_addrs`),
    });
    await swan.loadAllAfresh();
  };
  const connects = async (): Promise<boolean> => (await swan.initiate('home')).connected;
  const prints = async (script: string): Promise<string> =>
    (await device.must(process.execPath, ['-e', script])).stdout.trim();
  const storeAt = [await ipv4Of(acme, store), await addressOf(acme, store)] as const;
  const peerPath = `/api/forage/peers/${made.body.data.id}`;

  await t.test('it reaches the containers of its tenant, by address and by name', async (t) => {
    await install(made.body.data);
    await eventually('it is in', connects, Boolean);
    for (const address of storeAt) t.equal(await prints(hearing(address)), 'I am store', address);
    const profile = await acme.call<{ dns: string[] }>('GET', `/api/forage/profile/${made.body.data.id}`);
    const [resolver = ''] = profile.body.dns;
    t.equal(await prints(resolving(resolver, 'store.internal')), storeAt[0]);
  });

  await t.test('its tenant sees when it was there, and from where', async (t) => {
    const look = async () => (await acme.call<{ data: PeerView }>('GET', peerPath)).body.data;
    const seen = await eventually(
      'it is seen',
      look,
      ({ rx_bytes: rx, tx_bytes: tx }) => (rx ?? 0) > 0 && (tx ?? 0) > 0,
    );
    t.match(seen.endpoint, new RegExp(`^${deviceAt}:\\d+$`));
    t.ok(Math.abs(Date.parse(seen.last_handshake_at ?? '') - Date.now()) < 200_000);
  });

  await t.test('disabled, it is cut; enabled, it comes again', async (t) => {
    t.equal((await acme.call('PATCH', peerPath, { enabled: false })).status, 200);
    await eventually(
      'it is out',
      () => swan.associations(),
      (all) => all.length === 0,
    );
    t.notOk(await connects());
    t.equal((await acme.call('PATCH', peerPath, { enabled: true })).status, 200);
    await eventually('it is in again', connects, Boolean);
    t.equal(await prints(hearing(storeAt[0])), 'I am store');
  });

  await t.test('rotated, the old files are refused, and the new ones are good', async (t) => {
    const { body } = await acme.call<{ data: Made }>('POST', `${peerPath}/rotate`);
    await eventually(
      'it is out',
      () => swan.associations(),
      (all) => all.length === 0,
    );
    t.notOk(await connects());
    await install({ ...made.body.data, ...body.data });
    await eventually('it is in again', connects, Boolean);
    t.equal(await prints(hearing(storeAt[0])), 'I am store');
  });

  await t.test('strongSwan that is killed has all of it again', async (t) => {
    await daemon.restart();
    for (const { connection } of await swan.associations()) await swan.terminate(connection);
    await eventually('it is in again', connects, Boolean);
    t.equal(await prints(hearing(storeAt[0])), 'I am store');
  });

  await t.test('no host serves it: the device is out, and nothing of it stays on the host', async (t) => {
    t.equal((await operator.call('DELETE', `${networks}/office/servers`)).status, 204);
    await eventually(
      'it is out',
      () => swan.associations(),
      (all) => all.length === 0,
    );
    await eventually('nothing is left', standIns, (names) => names.length === 0);
  });
});
