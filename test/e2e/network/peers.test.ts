/**
 * A device of a tenant in a VPN network that a host of the cluster serves: it has its file from the
 * API alone, and reaches the containers of its tenant by name, on every host.
 */
import { randomBytes } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import type { PeerTraffic, PeerView } from '../../../schemas/api/peer.ts';
import { toolHere } from '../../../dev/fetch/tools.ts';
import { shortTemporaryRoot } from '../../../dev/paths.ts';
import { freePort } from '../../../dev/process/process.ts';
import { run } from '../../../dev/process/run.ts';
import { createMachine, type Machine } from '../../support/machine.ts';
import { eventually } from '../support/eventually.ts';
import { hostKey } from '../support/hosts.ts';
import { imageRunning } from '../support/images.ts';
import { startRig } from '../support/rig.ts';
import { skipWithoutNetwork } from '../vpn/netns.ts';
import { wireguardTools, wireguardUp } from '../vpn/wireguard.ts';
import { answering, port, small, tenantNetwork } from './tenant.ts';

t.setTimeout(300_000);
const deadlineMs = 20_000;
const networks = '/api/v2/operator/networks';
/** Addresses of the wire between the device and the host (RFC 5737). */
const [hostAt, deviceAt] = ['198.51.119.1', '198.51.119.2'];
/** Of the wire between the host and the internet, in place of which there is one machine. */
const [uplinkAt, worldAt] = ['9.119.119.1', '9.119.119.2'];

/** A program that prints what it hears on a connection, or `error` and the code of the error. */
const hearing = (address: string): string =>
  `require('net').connect(${port}, '${address}').on('data', (data) => process.stdout.write(data))` +
  `.on('error', (error) => process.stdout.write('error ' + error.code)).setTimeout(3000, function () { this.destroy() })`;
const resolving = (server: string, name: string): string =>
  `const r = new (require('dns').promises.Resolver)(); r.setServers(['${server}']);` +
  `r.resolve4('${name}').then((all) => console.log(all.join()), (error) => console.log(error.code))`;

t.test('a device in the tenant network', { skip: await skipWithoutNetwork(...wireguardTools) }, async (t) => {
  const [portOne, portTwo, vpnPort] = [await freePort(), await freePort(), await freePort()];
  const vault = `k1:${randomBytes(32).toString('base64')}`;
  const rig = await startRig(t, {
    hasNetwork: true,
    gateway: { VAULT_KEYS: vault },
    agent: { MESH_ADDRESS: `127.0.0.1:${portOne}`, USAGE_INTERVAL: '500ms', USAGE_REPORT_INTERVAL: '500ms' },
  });
  const second = await rig.addNetwork();
  await rig.addHost('h2', { NET_SOCKET: second.socket, MESH_ADDRESS: `127.0.0.1:${portTwo}` });
  const image = await imageRunning(rig, answering);
  const [acme, other] = [await rig.client('acme'), await rig.client('other')];
  const operator = await rig.client('ops', 'operator');
  const { attached, ipv4Of, addressOf } = tenantNetwork(rig);
  const declared = (name: string, host: string) => ({ name, ...image, ...small, env: { NAME: name }, host_key: host });
  const [store] = await acme.createRunning([declared('store', 'h2')]);
  const [spy] = await other.createRunning([declared('spy', hostKey)]);
  if (store === undefined || spy === undefined) throw new Error('no containers');
  await attached(acme, store);
  await attached(other, spy);

  const settings = {
    ...{ endpoint: hostAt, wireguard_port: vpnPort, tenants: ['acme', 'other'] },
    ...{ ipv4_pool: '10.119.0.0/24', ipv6_pool: 'fd19::/64' },
  };
  t.equal((await operator.call('POST', networks, { name: 'office', ...settings })).status, 201);
  const servers = `${networks}/office/servers`;
  const serve = (...hosts: readonly string[]) => operator.call('PUT', servers, { host_keys: hosts });

  await t.test('the hosts that serve the network', async (t) => {
    t.match((await operator.call('GET', servers)).body, { data: { host_keys: [] } });
    for (const hosts of [[], [hostKey, 'h2'], ['Not a key']]) t.equal((await serve(...hosts)).status, 422);
    t.match(await serve('h9'), { status: 422, body: { details: { 'host_keys.0': [/no host of this cluster/] } } });
    t.match(await serve(hostKey), { status: 200, body: { data: { host_keys: [hostKey] } } });
    t.match((await operator.call('GET', servers)).body, { data: { host_keys: [hostKey] } });
    t.match((await operator.call('GET', `${networks}/office`)).body, { data: { servers: [hostKey] } });
    t.equal((await operator.call('PUT', `${networks}/office`, { ...settings, tenant_network: false })).status, 409);
    const near = { ...settings, name: 'near', endpoint: '198.51.119.9', ipv4_pool: '10.119.0.0/25', ipv6_pool: null };
    t.equal((await operator.call('POST', networks, near)).status, 201);
    const overlapping = await operator.call('PUT', `${networks}/near/servers`, { host_keys: [hostKey] });
    t.match(overlapping, { status: 409, body: { reason: 'overlaps' } });
  });

  interface Made extends PeerView {
    readonly download_token: string;
  }
  const made = await acme.call<{ data: Made }>('POST', '/api/forage/peers', { name: 'phone', network: 'office' });
  t.equal(made.status, 201, made.text);
  const phone = made.body.data;
  const foreign = await other.call('POST', '/api/forage/peers', { name: 'laptop', network: 'office' });
  t.equal(foreign.status, 201);

  const folder = mkdtempSync(join(shortTemporaryRoot(), 'longshore-peer-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  const tools = await Promise.all((['ip', 'ping', ...wireguardTools] as const).map((name) => toolHere(name)));
  const device = await createMachine(t, { name: 'device', folder: join(folder, 'device'), tools });
  const ip = async (...args: readonly string[]): Promise<void> => {
    const ran = await run('ip', args, { deadlineMs });
    if (ran.code !== 0) throw new Error(`ip ${args.join(' ')}: ${ran.stderr}`);
  };
  /** Joins a machine and the host by a wire. */
  const wired = async (prefix: string, machine: Machine, here: string, there: string): Promise<void> => {
    const wire = `${prefix}${machine.pid}`;
    await ip('link', 'add', wire, 'type', 'veth', 'peer', 'name', 'wire', 'netns', String(machine.pid));
    t.teardown(() => run('ip', ['link', 'delete', wire], { deadlineMs }));
    await ip('address', 'add', `${here}/24`, 'dev', wire);
    await ip('link', 'set', wire, 'up');
    await machine.must('ip', ['address', 'add', `${there}/24`, 'dev', 'wire']);
    await machine.must('ip', ['link', 'set', 'wire', 'up']);
  };
  await wired('lsw', device, hostAt, deviceAt);

  const file = await acme.call('GET', `/api/forage/config/${phone.id}?token=${phone.download_token}`);
  t.equal(file.status, 200);
  const end = await wireguardUp({ ...device, ping: async () => false }, 'phone', file.text);
  const prints = async (script: string): Promise<string> =>
    (await device.must(process.execPath, ['-e', script])).stdout.trim();
  const hears = (address: string): Promise<string> => prints(hearing(address));
  const storeAt = [await ipv4Of(acme, store), await addressOf(acme, store)] as const;
  const isIn = (what: string) =>
    eventually(
      what,
      () => hears(storeAt[0]),
      (said) => said === 'I am store',
    );

  await t.test('it reaches the containers of its tenant, by address and by name', async (t) => {
    await isIn('it is in');
    t.equal(await hears(storeAt[1]), 'I am store', 'IPv6');
    const [resolver = ''] = end.nameservers();
    for (const name of ['store', 'store.internal']) t.equal(await prints(resolving(resolver, name)), storeAt[0], name);
    t.equal(await prints(resolving(resolver, 'spy.internal')), 'ENOTFOUND');
  });

  await t.test('and the internet by the host, unless its routes do not lead there', async (t) => {
    const world = await createMachine(t, { name: 'world', folder: join(folder, 'world'), tools });
    await wired('lsu', world, uplinkAt, worldAt);
    const listener = await world.start({
      name: 'listener',
      command: process.execPath,
      args: [
        '-e',
        `require('net').createServer((s) => s.on('error', () => {}).end(s.remoteAddress)).listen(${port}, '0.0.0.0')`,
      ],
      ready: async () => (await world.run(process.execPath, ['-e', hearing(worldAt)])).stdout === worldAt,
      readyDeadlineMs: deadlineMs,
    });
    t.teardown(() => listener.stop());
    t.match(file.text, 'AllowedIPs = 0.0.0.0/0, ::/0');
    await eventually(
      'it is heard there',
      () => hears(worldAt),
      (said) => said === uplinkAt,
    );
    t.equal(await hears(hostAt), 'error ECONNREFUSED', 'the host itself is not reached');
    const put = (routes?: readonly string[]) => operator.call('PUT', `${networks}/office`, { ...settings, routes });
    t.equal((await put(['10.119.0.0/24'])).status, 200);
    const split = await acme.call('GET', `/api/forage/config/${phone.id}?token=${phone.download_token}`);
    t.match(split.text, /AllowedIPs = .*10\.119\.0\.0\/24/);
    t.notMatch(split.text, '0.0.0.0/0');
    await eventually(
      'it is refused',
      () => hears(worldAt),
      (said) => said === 'error ECONNREFUSED',
    );
    await isIn('its containers are reached');
    t.equal((await put()).status, 200);
  });

  await t.test('another tenant’s refuse it', async (t) => {
    for (const address of [await ipv4Of(other, spy), await addressOf(other, spy)])
      t.equal(await hears(address), 'error ECONNREFUSED', address);
  });

  await t.test('disabled, it is out; enabled, it is in again; and so when it expires', async (t) => {
    const change = (body: object) => acme.call('PATCH', `/api/forage/peers/${phone.id}`, body);
    const soon = () => ({ expires_at: new Date(Date.now() + 4000).toISOString() });
    for (const [out, back] of [
      [() => ({ enabled: false }), { enabled: true }],
      [soon, { expires_at: null }],
    ] as const) {
      t.equal((await change(out())).status, 200);
      await eventually(
        'it is out',
        () => hears(storeAt[0]),
        (said) => said !== 'I am store',
      );
      t.equal((await change(back)).status, 200);
      await isIn('it is in again');
    }
  });

  await t.test('the agent killed: it goes on', async (t) => {
    const pinging = device.run('ping', ['-n', '-i', '0.2', '-c', '60', '-W', '3', storeAt[0]]);
    await rig.agent.kill9();
    t.equal(await hears(storeAt[0]), 'I am store');
    await rig.agent.start();
    // A busy machine may lose one; a peer that is cut loses all until its next handshake.
    t.match((await pinging).stdout, / (?:58|59|60) received/, 'neither its end nor its start cuts it');
    t.equal(await hears(storeAt[0]), 'I am store');
  });

  await t.test('the tenant sees when it was there, from where, and how much went through, counted once', async (t) => {
    const path = `/api/forage/peers/${phone.id}`;
    const look = async (client = acme) => {
      const { body, headers } = await client.call<{ data: PeerView }>('GET', path);
      return { ...body.data, etag: headers.get('etag') };
    };
    const received = async (): Promise<number> => {
      const { body } = await acme.call<{ data: PeerTraffic[] }>('GET', `${path}/traffic`);
      return body.data.reduce((sum, { rx_bytes: bytes }) => sum + bytes, 0);
    };
    const push = () =>
      device.run('ping', ['-n', '-q', '-s', '1300', '-c', '500', '-i', '0.002', '-W', '3', storeAt[0]]);
    const pushed = 500 * 1300;
    const before = await look();
    await push();
    const {
      etag,
      updated_at,
      last_handshake_at: handshake,
      endpoint,
    } = await eventually(
      'all is counted',
      look,
      ({ rx_bytes, tx_bytes }) => (rx_bytes ?? 0) > pushed && (tx_bytes ?? 0) > pushed,
    );
    t.same({ etag, updated_at }, { etag: before.etag, updated_at: before.updated_at });
    t.ok(Math.abs(Date.parse(handshake ?? '') - Date.now()) < 200_000, handshake ?? 'no handshake');
    t.match(endpoint, new RegExp(`^${deviceAt}:\\d+$`));
    t.equal((await look(await rig.client('acme', 'read'))).endpoint, null, 'a token that may not manage peers');
    t.equal((await other.call('GET', `${path}/traffic`)).status, 404, 'another tenant');

    const counted = await received();
    for (const program of [rig.agent, rig.actors]) {
      await program.kill9();
      await program.start();
    }
    await rig.network?.net.server().kill9();
    // Its interface ended with it, where the kernel has no WireGuard: the next one counts from 0.
    await rig.network?.net.restart();
    await isIn('it is in again');
    await eventually(
      'a new owner hears of it again',
      look,
      ({ last_handshake_at: seen, endpoint: from }) => seen !== null && from !== null,
    );
    await push();
    await eventually('it is counted', received, (bytes) => bytes > counted + pushed);
    t.ok((await received()) < counted + 2 * pushed, 'once');
  });

  await t.test('no host serves it: the device is out', async (t) => {
    t.equal((await operator.call('DELETE', servers)).status, 204);
    await eventually(
      'it is out',
      () => hears(storeAt[0]),
      (said) => said !== 'I am store',
    );
    t.equal((await serve(hostKey)).status, 200);
    await isIn('it is in again');
  });
});
