/**
 * A host serves a network by IKEv2: `longshore-net` drives a real strongSwan, and devices come with
 * the files that they have downloaded.
 */
import { mkdirSync } from 'node:fs';
import { request } from 'node:http';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { repositoryRoot } from '../../../dev/paths.ts';
import { passwordPlaceholder } from '../../../gateway/vpn/render/strongswan/swanctl.ts';
import { newWireguardKeys } from '../../../lib/wireguard-keys.ts';
import type { ContainerId, HostKey, NetworkName, TenantId } from '../../../schemas/ids.ts';
import type { DesiredNetwork, NetworkState, ServedPeers, VpnNetwork } from '../../../schemas/wire/net.ts';
import type { Machine } from '../../support/machine.ts';
import { until } from '../../support/until.ts';
import { ikev2Tools, startStrongswan, windowsLike, type Strongswan, type SwanctlFiles } from './ikev2.ts';
import { createNetwork, skipWithoutNetwork, wire, type Joined, type Network } from './netns.ts';
import { attachmentName, startVpnRig, type NewPeer, type VpnRig } from './rig.ts';

t.setTimeout(240_000);
const tools = [...ikev2Tools, 'openssl', 'nft', 'wg', 'wireguard-go'] as const;
const skip = await skipWithoutNetwork(...tools);

const network = 'office' as NetworkName;
const web = { ipv4: '10.200.0.1', ipv6: 'fd5e:1:2::1' } as const;
/** Of another tenant. */
const spy = { ipv4: '10.200.0.2', ipv6: 'fd5e:1:2::2' } as const;
const answerS = 10;
const silenceS = 1;
/** Twenty a second; as in the test of WireGuard, a busy machine may lose one. */
const pings = { sent: 60, uncut: 58 } as const;

/** Of a ping in its IPv4 packet. */
const pingBytes = 84;
/** The indexes of the keys that packets go by, in a list of associations. */
const spisIn = (text: string): string => (text.match(/\b[0-9a-f]{8,16}(?:_[ir])?\b/g) ?? []).join();

interface Device {
  readonly peer: NewPeer;
  readonly files: SwanctlFiles;
  /** The certificate in its bundle. */
  readonly certificate: string;
  readonly bundle: { readonly file: string; readonly password: string; readonly localId: string };
}

async function download(rig: VpnRig, at: Machine, peer: NewPeer): Promise<Device> {
  const token = `token=${peer.download_token}`;
  const p12 = await rig.file(`/api/forage/p12/${peer.id}?encryption=modern&${token}`);
  const conf = await rig.file(`/api/forage/profile/${peer.id}?format=swanctl&${token}`);
  const script = `echo ${p12.bytes.toString('base64')} | base64 -d | openssl pkcs12 -nokeys -clcerts -passin pass:${peer.p12_password}`;
  const { stdout: certificate } = await at.must('sh', ['-c', script]);
  const file = attachmentName(p12);
  return {
    peer,
    certificate,
    bundle: { file, password: peer.p12_password, localId: `${peer.id}.${network}.internal` },
    files: {
      'conf.d/office.conf': conf.text.replace(passwordPlaceholder, peer.p12_password),
      [`pkcs12/${file}`]: p12.bytes,
    },
  };
}

/** `longshore-net` on the server's machine, with two containers. */
async function startNet({ server }: Network, router: string) {
  const folder = join(server.folder, router);
  const socket = join(folder, 'net.sock');
  mkdirSync(folder);
  const ask = (method: string, path: string, body = ''): Promise<{ status: number; body: string }> =>
    new Promise((resolve, reject) => {
      const asking = request({ socketPath: socket, path, method }, (response) => {
        let text = '';
        response.setEncoding('utf8').on('data', (part: string) => (text += part));
        response.once('end', () => resolve({ status: response.statusCode ?? 0, body: text }));
      });
      asking.once('error', reject);
      asking.end(body);
    });
  const env = {
    NET_SOCKET: socket,
    NET_STATE_DIR: join(folder, 'state'),
    NET_NAMES_DIR: join(folder, 'names'),
    NET_ROUTER: router,
    NET_NAMESPACES: '/run/netns',
    NET_INTERVAL: '1s',
    NET_VICI: join(server.folder, 'vici'),
    LOG_LEVEL: 'error',
  };
  const program = (name: string) => ({
    command: process.execPath,
    args: ['--enable-source-maps', join(repositoryRoot, 'dist/host-agent/tenant-network', name)],
    env,
    readyDeadlineMs: 20_000,
  });
  const isListening = (): Promise<boolean> =>
    ask('PUT', '/network', '{}').then(
      ({ status }) => status === 400,
      () => false,
    );
  const start = () => server.start({ ...program('main.js'), name: `longshore-net of ${router}`, ready: isListening });
  const attached = await Promise.all(
    ([web, spy] as const).map(async (at, place) => {
      const name = `${router}-${place}`;
      await server.must('ip', ['netns', 'add', name]);
      await server.must('ip', ['-n', name, 'link', 'set', 'lo', 'up']);
      const id = `00000000-0000-7000-8000-00000000000${place + 1}` as ContainerId;
      const tenant = ['acme', 'other'][place] as TenantId;
      return { id, tenant, namespace: `/run/netns/${name}`, run: 'first', ...at };
    }),
  );
  const want = async (vpn: readonly VpnNetwork[]): Promise<NetworkState> => {
    const desired: DesiredNetwork = {
      ...{ v: 1, owner: 'h1', mtu: 1420, mesh: null, attached, vpn: [...vpn] },
      ranges: { ipv4: '10.200.0.0/16', ipv6: 'fd5e:1:2::/48' },
      members: attached.map((each, place) => ({ ...each, name: ['web', 'spy'][place] ?? '', host: 'h1' as HostKey })),
    };
    const answer = await ask('PUT', '/network', JSON.stringify(desired));
    if (answer.status !== 200) throw new Error(`${answer.status} ${answer.body}`);
    return JSON.parse(answer.body) as NetworkState;
  };
  const peers = async () => (JSON.parse((await ask('GET', '/peers')).body) as ServedPeers)[network]?.peers ?? [];
  const resolver = () =>
    server.start({ ...program('names/main.js'), name: 'longshore-dns', ready: () => Promise.resolve(true) });
  return { start, want, peers, resolver };
}

t.test('a host serves a network by IKEv2', { skip }, async (t) => {
  const rig = await startVpnRig(t);
  const acme = await rig.client('acme');
  await rig.network({
    ...{ name: network, endpoint: wire.server.ipv4, tenants: ['acme'] },
    ...{ ipv4_pool: '10.86.0.0/24', ipv6_pool: 'fd86::/64' },
  });
  const operatorFile = async (name: string): Promise<string> => {
    const { status, text } = await rig.operator.call('GET', `/api/v2/operator/networks/${network}/${name}`);
    if (status !== 200) throw new Error(`${name}: ${status} ${text}`);
    return text;
  };
  const wires = await createNetwork(t, ...tools);
  const second = await wires.join('second', 1);
  const make = async (name: string): Promise<Device> =>
    download(rig, wires.client, await rig.peer(acme, { name, network }));
  const [phone, tablet] = [await make('phone'), await make('tablet')];
  const ike = {
    id: wire.server.ipv4,
    certificate: await operatorFile('server.pem'),
    private_key: await operatorFile('server-key.pem'),
  };
  const keys = newWireguardKeys();
  const served = (...devices: readonly Device[]): VpnNetwork => ({
    ...{ name: network, host: 'h1' as HostKey, pools: ['10.86.0.0/24', 'fd86::/64'] },
    server: { port: 51_820, mtu: null, private_key: keys.privateKey, ike },
    peers: devices.map(({ peer, certificate, bundle }) => ({
      ...{ tenant: 'acme' as TenantId, ipv4: peer.ipv4, ipv6: peer.ipv6, key: peer.public_key },
      preshared_key: newWireguardKeys().privateKey,
      ike: { id: bundle.localId, certificate },
    })),
  });
  const net = await startNet(wires, 'one');
  let program = await net.start();

  const clients = new Map<Device, { machine: Machine; swan: Strongswan }>();
  const connect = async (t: Test, machine: Machine, device: Device, files = device.files): Promise<void> => {
    const { swan } = clients.get(device) ?? { swan: await startStrongswan(machine, files) };
    clients.set(device, { machine, swan });
    for (const { connection } of await swan.associations()) await swan.terminate(connection);
    swan.put(files);
    await swan.loadAllAfresh();
    const { connected, output } = await swan.initiate('home');
    t.ok(connected, connected ? 'the device connects' : output);
  };
  const reaches = async (t: Test, machine: Pick<Joined, 'ping'>): Promise<void> => {
    for (const address of Object.values(web)) t.ok(await machine.ping(address, answerS), `${address} answers`);
  };
  const pingsOf = async (machine: Machine, count: number): Promise<number> => {
    const ran = await machine.run('ping', ['-n', '-q', '-i', '0.05', '-c', String(count), '-W', '2', web.ipv4]);
    return Number(/ (\d+) received/.exec(ran.stdout)?.[1] ?? 0);
  };

  await t.test('where strongSwan does not run, that is said, and all else works', async (t) => {
    const said = async (): Promise<string> => String((await net.want([served(phone, tablet)])).vpn[network]);
    await until('it is said', async () => (await said()).startsWith('no IKEv2: no strongSwan answers at '));
    t.same(Object.values((await net.want([served(phone, tablet)])).attached), [null, null]);
  });

  const daemon = await startStrongswan(wires.server, {});
  const works = () => until('IKEv2 works', async () => (await net.want([served(phone, tablet)])).vpn[network] === null);
  await works();

  await t.test('devices reach the containers of their tenant, by their own addresses', async (t) => {
    await connect(t, wires.client, phone);
    await connect(t, second, tablet);
    await reaches(t, wires.client);
    await reaches(t, second);
    t.ok(await wires.client.ping(tablet.peer.ipv4, answerS), 'and one another');
    for (const address of Object.values(spy))
      t.notOk(await wires.client.ping(address, silenceS), `${address} is another's`);
  });

  await t.test('and by their names', async (t) => {
    await net.resolver();
    const script = [
      'const resolver = new (require("node:dns").promises.Resolver)({ timeout: 1000, tries: 1 })',
      'resolver.setServers(["10.200.0.53"])',
      'resolver.resolve4("web.internal").then((all) => console.log(all.join()))',
    ].join(';');
    const asked = async (): Promise<string> => (await wires.client.run(process.execPath, ['-e', script])).stdout.trim();
    t.equal(await until('the resolver answers', asked, (said) => said !== ''), web.ipv4);
  });

  await t.test('another longshore-net of the machine leaves this strongSwan alone', async (t) => {
    const other = await startNet(wires, 'two');
    const running = await other.start();
    const { server: its, ...rest } = served();
    const vpn = [{ ...rest, server: its === null ? null : { ...its, port: 51_821 } }];
    const said = async (): Promise<string> => String((await other.want(vpn)).vpn[network]);
    await until('it is said', said, (text) => text.includes('strongSwan serves another longshore-net (one)'));
    await running.stop();
    await reaches(t, wires.client);
  });

  await t.test('what they have sent is counted once, also over a restart of longshore-net', async (t) => {
    const seen = async () => (await net.peers()).find(({ key }) => key === phone.peer.public_key);
    const before = await seen();
    t.match(before, { endpoint: `${wire.client.ipv4}:4500` });
    t.ok(before !== undefined && before.handshake > 1_700_000_000 && before.rx_bytes > 0 && before.tx_bytes > 0);
    const pinging = pingsOf(second, pings.sent);
    await program.kill9();
    program = await net.start();
    t.ok((await pinging) >= pings.uncut, 'and no packet is lost');
    await works();
    t.same((await seen())?.rx_bytes, before?.rx_bytes);
    await wires.client.ping(web.ipv4, answerS);
    await until('more has come', async () => ((await seen())?.rx_bytes ?? 0) > (before?.rx_bytes ?? 0));
  });

  await t.test('keys are renewed while packets go on: none is lost, and each counts once', async (t) => {
    const its = clients.get(phone)?.swan;
    if (its === undefined) throw new Error('the phone is not there');
    const received = async () => (await net.peers()).find(({ key }) => key === phone.peer.public_key)?.rx_bytes ?? 0;
    const [before, [association]] = [await received(), await its.associations()];
    const keysOf = async (): Promise<string> => (await its.associations()).map(({ text }) => spisIn(text)).join();
    const pinging = pingsOf(wires.client, pings.sent);
    for (const renew of [
      () => its.rekey('child', 'home'),
      () => daemon.rekey('child', 'net'),
      () => its.rekey('ike', association?.connection ?? ''),
    ]) {
      const old = await keysOf();
      await renew();
      await until('keys are new', async () => (await keysOf()) !== old);
    }
    t.ok((await pinging) >= pings.uncut);
    await until('all is counted', async () => (await received()) >= before + pings.uncut * pingBytes);
    t.ok((await received()) < before + 3 * pings.sent * pingBytes, 'once');
  });

  await t.test('a device whose address changes stays connected', async (t) => {
    const its = clients.get(tablet)?.swan;
    const [before] = (await its?.associations()) ?? [];
    const moved = second.ipv4.replace(/\d+$/, '3');
    // Another prefix: it does not go with the address that it follows.
    await second.must('ip', ['address', 'add', `${moved}/25`, 'dev', 'wire']);
    await second.must('ip', ['address', 'delete', `${second.ipv4}/24`, 'dev', 'wire']);
    // strongSwan chooses the family.
    const places = new Set([`${moved}:4500`, `[${second.ipv6}]:4500`]);
    await until('the server knows where it is', async () =>
      (await net.peers()).some(({ endpoint }) => places.has(endpoint ?? '')),
    );
    await reaches(t, second);
    const [after] = (await its?.associations()) ?? [];
    t.equal(after?.text.split(',', 1)[0], before?.text.split(',', 1)[0], 'by the same connection');
  });

  await t.test('one that is disabled is cut, and the other loses no packet', async (t) => {
    const pinging = pingsOf(second, pings.sent);
    await net.want([served(tablet)]);
    t.notOk(await wires.client.ping(web.ipv4, silenceS), 'at once');
    const its = clients.get(phone)?.swan;
    await until('strongSwan has ended it', async () => (await its?.associations())?.length === 0);
    t.notOk((await its?.initiate('home'))?.connected, 'it does not connect again');
    await net.want([served(phone, tablet)]);
    await until('enabled, it connects', async () => (await its?.initiate('home'))?.connected === true);
    t.ok((await pinging) >= pings.uncut);
    await reaches(t, wires.client);
  });

  await t.test('a rotated peer: the old bundle is refused, the new one connects', async (t) => {
    const answer = await acme.call<{ data: NewPeer }>('POST', `/api/forage/peers/${phone.peer.id}/rotate`);
    t.equal(answer.status, 200);
    const rotated = await download(rig, wires.client, { ...phone.peer, ...answer.body.data });
    const pinging = pingsOf(second, pings.sent);
    await net.want([served(rotated, tablet)]);
    const its = clients.get(phone)?.swan;
    await until('the old connection has ended', async () => (await its?.associations())?.length === 0);
    const old = await its?.initiate('home');
    t.notOk(old?.connected);
    t.match(old?.output, /AUTHENTICATION_FAILED/);
    clients.set(rotated, clients.get(phone)!);
    await connect(t, wires.client, rotated);
    await reaches(t, wires.client);
    t.ok((await pinging) >= pings.uncut);
  });

  await t.test('a device with the proposals and the identity of Windows connects', async (t) => {
    const { bundle } = tablet;
    const conf = windowsLike({ server: wire.server.ipv4, ...bundle });
    await connect(t, second, tablet, { ...tablet.files, 'conf.d/office.conf': conf });
    await reaches(t, second);
  });

  await t.test('strongSwan is killed: devices connect again as soon as it is back', async (t) => {
    await daemon.restart();
    await works();
    await connect(t, second, tablet);
    await reaches(t, second);
  });
});
