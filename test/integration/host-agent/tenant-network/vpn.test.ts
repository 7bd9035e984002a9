/**
 * Devices of tenants in a VPN network that a host serves, with real WireGuard: they reach the
 * containers of their tenant on every host, and nobody else's.
 */
import { readFileSync, statSync } from 'node:fs';
import { basename, join } from 'node:path';
import t from 'tap';
import type { Test } from 'tap';
import { vpnLinkOf } from '../../../../host-agent/tenant-network/link-names.ts';
import { newWireguardKeys, type WireguardKeys } from '../../../../lib/wireguard-keys.ts';
import type { HostKey, NetworkName, TenantId } from '../../../../schemas/ids.ts';
import type { Attachment, KnownNames, NamedMember, VpnNetwork } from '../../../../schemas/wire/net.ts';
import { freePort } from '../../../../dev/process/process.ts';
import { canStartEngine } from '../../../support/servers.ts';
import { inCi, skipWithoutTools } from '../../../support/tools.ts';
import { until } from '../../../support/until.ts';
import { attachment, startRig, type Rig, type Sandbox } from './rig.ts';

t.setTimeout(240_000);
const tools = ['nft', 'ping', 'wg', 'wireguard-go'] as const;
const skip =
  canStartEngine || inCi ? await skipWithoutTools(...tools) : 'entering network namespaces needs Linux and root';
const port = 7000;
/**
 * Of sixty echoes: a busy machine may lose one; a peer that is cut off loses all until its next
 * handshake.
 */
const uncutPings = 58;
const [first, second] = ['h1' as HostKey, 'h2' as HostKey];
const office = 'office' as NetworkName;

interface Peer {
  readonly keys: WireguardKeys;
  readonly place: VpnNetwork['peers'][number];
}

function peer(tenant: string, at: number): Peer {
  const keys = newWireguardKeys();
  const place = {
    tenant: tenant as TenantId,
    ipv4: `10.86.0.${at}`,
    ipv6: `fd86::${at}`,
    key: keys.publicKey,
    preshared_key: newWireguardKeys().privateKey,
  };
  return { keys, place };
}

const member = ({ id, tenant, ipv4, ipv6 }: Attachment, host: HostKey): NamedMember => ({
  ...{ id, tenant, ipv4, ipv6, host },
  name: id,
});

/** A network that the first host serves. */
async function served(t: Test) {
  const rig = await startRig(t);
  const at = await freePort();
  const server = newWireguardKeys();
  const network = (peers: readonly Peer[], more: Partial<VpnNetwork> = {}): VpnNetwork => ({
    name: office,
    host: first,
    pools: ['10.86.0.0/24', 'fd86::/64'],
    server: { port: at, mtu: null, private_key: server.privateKey },
    peers: peers.map(({ place }) => place),
    ...more,
  });
  const tenantRanges = ['10.200.0.0/16', 'fd5e:1:2::/48', '10.86.0.0/24'];
  const device = (
    { keys, place }: Peer,
    also: readonly string[] = [],
    routes: readonly string[] = tenantRanges,
  ): Promise<Sandbox> =>
    rig.device(
      [
        `[Interface]\nPrivateKey = ${keys.privateKey}`,
        `[Peer]\nPublicKey = ${server.publicKey}\nPresharedKey = ${place.preshared_key}`,
        `Endpoint = 127.0.0.1:${at}\nAllowedIPs = ${routes.join(', ')}\n`,
      ].join('\n'),
      [`${place.ipv4}/32`, `${place.ipv6}/128`, ...also],
      routes,
    );
  return { rig, network, device };
}

const reaches = async (from: Sandbox, ...addresses: readonly string[]): Promise<boolean> => {
  const ways = await Promise.all(addresses.map((address) => from.connect(address, port)));
  return ways.every((said) => said === 'ok');
};
const listening = async (rig: Rig): Promise<Sandbox> => {
  const sandbox = await rig.sandbox();
  await sandbox.listen(port);
  return sandbox;
};

t.test('on the host that serves it', { skip }, async (t) => {
  const { rig, network, device } = await served(t);
  const [web, spy] = [await listening(rig), await listening(rig)];
  const attached = [attachment(web, 'demo', 1), attachment(spy, 'other', 3)];
  const [phone, tablet, foreign] = [peer('demo', 2), peer('demo', 4), peer('other', 3)];
  const all = [phone, tablet, foreign];
  const want = (...peers: readonly Peer[]) => rig.want({ attached, vpn: [network(peers)] });

  const state = await want(...all);
  t.same(Object.values(state.attached), [null, null]);
  t.same(state.vpn, { office: null });
  const own = await device(phone, ['10.86.0.77/32']);
  await own.listen(port);

  await t.test('a device reaches the containers of its tenant, on every protocol', async (t) => {
    await until('it is in', () => reaches(own, '10.200.0.1', 'fd5e:1:2::1'));
    for (const address of ['10.200.0.1', 'fd5e:1:2::1']) {
      t.ok(await own.ping(address), `ping ${address}`);
      t.equal(await own.send(address, port, `to ${address}`), 'ok');
    }
    await until('both datagrams are there', async () => (await web.heard(port)).length === 2);
    t.same((await web.heard(port)).sort(), ['10.86.0.2 to 10.200.0.1', 'fd86::2 to fd5e:1:2::1'], 'by its address');
  });

  await t.test('the resolvers are told who asks, and no key', (t) => {
    const file = join(rig.names, 'names.json');
    const text = readFileSync(file, 'utf8');
    const { askers } = JSON.parse(text) as KnownNames;
    t.same(askers.map(({ ipv4 }) => ipv4).sort(), ['10.200.0.1', '10.200.0.3', '10.86.0.2', '10.86.0.3', '10.86.0.4']);
    for (const { place } of all) t.notMatch(text, place.preshared_key ?? '');
    t.notMatch(text, network([]).server?.private_key ?? '');
    t.equal(statSync(file).mode & 0o777, 0o640);
    t.end();
  });

  await t.test('those of another tenant refuse it', async (t) => {
    for (const address of ['10.200.0.3', 'fd5e:1:2::3', '10.200.0.99'])
      t.equal(await own.connect(address, port), 'ECONNREFUSED', address);
    t.notOk(await own.ping('10.200.0.3'));
  });

  await t.test('containers answer it, and reach no device themselves', async (t) => {
    for (const address of ['10.86.0.2', 'fd86::2']) t.equal(await web.connect(address, port), 'ECONNREFUSED', address);
    t.notOk(await web.ping('10.86.0.2'));
    t.equal(await spy.connect('10.86.0.2', port), await spy.connect('10.86.0.99', port), 'no more of another tenant');
    await web.send('10.86.0.2', port, 'unasked');
    t.ok(await reaches(own, '10.200.0.1'));
    t.same(await own.heard(port), []);
  });

  await t.test('it sends from its own address alone', async (t) => {
    const before = await web.heard(port);
    await own.send('10.200.0.1', port, 'forged', '10.86.0.77');
    await own.send('10.200.0.1', port, 'after');
    await until('the true one is there', async () => (await web.heard(port)).length > before.length);
    t.same((await web.heard(port)).slice(before.length), ['10.86.0.2 after']);
  });

  await t.test('the program says what each has sent, and when it was heard', async (t) => {
    const before = (await rig.peers())['office'];
    const seen = before?.peers.find(({ key }) => key === phone.keys.publicKey);
    t.match(seen, { rx_bytes: Number, tx_bytes: Number, endpoint: /^127\.0\.0\.1:\d+$/ });
    t.ok(seen !== undefined && seen.handshake > 1_700_000_000 && seen.rx_bytes > 100 && seen.tx_bytes > 100);
    t.match(
      before?.peers.find(({ key }) => key === foreign.keys.publicKey),
      { handshake: 0, rx_bytes: 0, endpoint: null },
      'one that never came',
    );
    const pinging = own.pings('10.200.0.1', 60);
    await rig.kill();
    await rig.start();
    await until('it answers', async () => (await rig.peers())['office'] !== undefined);
    t.equal((await rig.peers())['office']?.link, before?.link, 'the interface goes on');
    t.ok((await pinging) >= uncutPings, 'and what goes through it');
  });

  await t.test('a peer that is taken out by hand is let in again', async (t) => {
    const link = vpnLinkOf(rig.router, office);
    await rig.inRouter('wg', 'set', link, 'peer', foreign.keys.publicKey, 'remove');
    const isIn = async (): Promise<boolean> =>
      (await rig.inRouter('wg', 'show', link, 'peers')).includes(foreign.keys.publicKey);
    t.notOk(await isIn());
    await until('it is in', isIn);
    t.pass();
  });

  await t.test('another that comes, goes and comes again costs it no packet', async (t) => {
    const others = Array.from({ length: 100 }, (_, at) => peer('demo', 100 + at));
    const pinging = own.pings('10.200.0.1', 60);
    for (let round = 0; round < 3; round++) {
      await want(...all, ...others);
      await want(phone, foreign);
    }
    t.ok((await pinging) >= uncutPings);
    await want(...all);
  });

  await t.test('one that is taken out is cut at once; one that is in again goes on', async (t) => {
    await want(tablet, foreign);
    t.not(await own.connect('10.200.0.1', port), 'ok');
    await want(...all);
    await until('it is back', () => reaches(own, '10.200.0.1', 'fd5e:1:2::1'));
  });

  await t.test('longshore-net killed, and the interface deleted', async (t) => {
    await rig.kill();
    t.ok(await reaches(own, '10.200.0.1', 'fd5e:1:2::1'));
    await rig.start();
    await rig.inRouter('ip', 'link', 'delete', vpnLinkOf(rig.router, office));
    await until('it is back', () => reaches(own, '10.200.0.1', 'fd5e:1:2::1'));
  });

  await t.test('one that is gone leaves nothing', async (t) => {
    await rig.want({ attached });
    t.not(await own.connect('10.200.0.1', port), 'ok');
    t.notMatch(await rig.inRouter('ip', 'link'), 'lsv');
    t.notMatch(await web.must('ip', 'route'), '10.86.0.0');
  });
});

t.test('a container on another host', { skip }, async (t) => {
  const { rig, network, device } = await served(t);
  const two = await startRig(t);
  const [portOne, portTwo] = [await freePort(), await freePort()];
  const keyOf = async (of: Rig, at: number) => (await of.want({ mesh: { port: at, ends: [] } })).mesh?.key ?? '';
  const endOf = async (host: HostKey, of: Rig, at: number) => ({
    ...{ host, key: await keyOf(of, at), port: at },
    address: '127.0.0.1',
  });
  const [endOne, endTwo] = [await endOf(first, rig, portOne), await endOf(second, two, portTwo)];
  const [store, spy] = [await listening(two), await listening(two)];
  const [storeAt, spyAt] = [attachment(store, 'demo', 1), attachment(spy, 'other', 3)];
  const phone = peer('demo', 2);
  const members = [member(storeAt, second)];
  const away = network([{ ...phone, place: { ...phone.place, preshared_key: null } }], { server: null });
  await rig.want({ members, vpn: [network([phone])], mesh: { port: portOne, ends: [endTwo] } });
  await two.want({ attached: [storeAt, spyAt], members, vpn: [away], mesh: { port: portTwo, ends: [endOne] } });
  const own = await device(phone);
  await own.listen(port);
  await until('it is in', () => reaches(own, '10.200.0.1', 'fd5e:1:2::1'));
  t.equal(await own.connect('10.200.0.3', port), 'ECONNREFUSED', 'another tenant');
  t.equal(await store.connect('10.86.0.2', port), 'ECONNREFUSED', 'the container opens none');
  t.equal(await spy.connect('10.86.0.2', port), 'ENETUNREACH', 'another tenant has no way there');
});

/** A way out as an engine's sandbox is, and a machine of the internet behind it. */
async function wayOutTo(rig: Rig, address: string, own: string) {
  const [out, internet] = [await rig.sandbox(), await listening(rig)];
  await out.must('ip', 'link', 'add', 'eth0', 'type', 'veth', 'peer', 'name', 'eth0', 'netns', basename(internet.file));
  const join = (sandbox: Sandbox, ...more: readonly string[]): Promise<string> =>
    sandbox.must('sh', '-c', ['ip link set eth0 up', ...more].join(' && '));
  await join(out, `ip address add ${own}/24 dev eth0`, 'ip route add default via 172.30.0.1');
  // The route leads to peers, were they to be reached by it.
  const back = `ip route add 10.86.0.0/24 via ${own}`;
  await join(internet, 'ip address add 172.30.0.1/24 dev eth0', `ip address add ${address}/32 dev lo`, back);
  return { out, internet };
}

t.test('a device that sends everything through the tunnel', { skip }, async (t) => {
  const { rig, network, device } = await served(t);
  const address = '1.2.3.4';
  const { out, internet } = await wayOutTo(rig, address, '172.30.0.2');
  const web = await listening(rig);
  const attached = [attachment(web, 'demo', 1)];
  const phone = peer('demo', 2);
  const vpn = [network([phone], { internet: true })];
  const way_out = { namespace: out.file, run: 'first' };
  const state = await rig.want({ attached, vpn, way_out });
  t.same([state.vpn, state.way_out], [{ office: null }, undefined]);
  const own = await device(phone, [], ['0.0.0.0/0', '::/0']);
  await own.listen(port);

  await t.test('reaches its containers, and the internet from the address of the way out', async (t) => {
    await until('it is in', () => reaches(own, '10.200.0.1', address));
    t.ok(await own.ping(address));
    await own.send(address, port, 'hello');
    await until('it is heard', async () => (await internet.heard(port)).length > 0);
    t.same(await internet.heard(port), ['172.30.0.2 hello']);
  });

  await t.test('a link is made once', async (t) => {
    const shown = (): Promise<string> => rig.inRouter('sh', '-c', 'ip -o link | grep -E "ls[co]" | cut -d: -f1,2');
    const before = await shown();
    await rig.inRouter('ip', 'link', 'delete', /lso\w+/.exec(before)?.[0] ?? '');
    await until('it is back', () => reaches(own, address));
    const made = await shown();
    t.ok(await own.ping(address));
    for (let pass = 0; pass < 5; pass++) await rig.want({ attached, vpn, way_out });
    t.equal(await shown(), made);
  });

  await t.test('is reached by nobody there', async (t) => {
    t.not(await internet.connect('10.86.0.2', port), 'ok');
    await internet.send('10.86.0.2', port, 'unasked');
    t.ok(await reaches(own, address));
    t.same(await own.heard(port), []);
  });

  await t.test('IPv6 has no way out, and says so at once', async (t) => {
    t.equal(await own.connect('2600::1', port), 'ECONNREFUSED');
  });

  await t.test('a container has none by the tenant network', async (t) => {
    await web.must('ip', 'route', 'add', address, 'via', '169.254.1.1', 'dev', 'ls0');
    t.equal(await web.connect(address, port), 'ECONNREFUSED');
    t.equal(await own.connect('10.200.0.99', port), 'ECONNREFUSED', 'what nobody has is not asked there');
  });

  await t.test('longshore-net killed, and the link deleted', async (t) => {
    await rig.kill();
    t.ok(await reaches(own, address));
    await rig.start();
    const linkOut = async (): Promise<string> => /lso\w+/.exec(await rig.inRouter('ip', 'link'))?.[0] ?? '';
    const before = await rig.inRouter('ip', '-o', 'link', 'show', 'dev', await linkOut());
    await rig.want({ attached, vpn, way_out });
    t.equal(await rig.inRouter('ip', '-o', 'link', 'show', 'dev', await linkOut()), before, 'it goes on');
    await rig.inRouter('ip', 'link', 'delete', await linkOut());
    await until('it is back', () => reaches(own, address));
    t.ok(await own.ping(address));
  });

  await t.test('another sandbox takes its place', async () => {
    const other = await rig.sandbox();
    await internet.must('ip', 'link', 'delete', 'eth0');
    const links = `ip link add eth0 type veth peer name eth0 netns ${basename(internet.file)}`;
    await other.must('sh', '-c', `${links} && ip link set eth0 up && ip address add 172.30.0.3/24 dev eth0`);
    await other.must('ip', 'route', 'add', 'default', 'via', '172.30.0.1');
    await internet.must('sh', '-c', 'ip link set eth0 up && ip address add 172.30.0.1/24 dev eth0');
    await rig.want({ attached, vpn, way_out: { namespace: other.file, run: 'second' } });
    await until('it is back', () => reaches(own, address));
  });

  await t.test('a sandbox that is not there is said, and costs nothing else', async (t) => {
    const gone = { namespace: '/run/netns/lss-none', run: 'third' };
    t.match((await rig.want({ attached, vpn, way_out: gone })).way_out, /no namespace/);
    t.ok(await reaches(own, '10.200.0.1'));
  });

  await t.test('a network that is not let out', async (t) => {
    await rig.want({ attached, vpn: [network([phone])], way_out });
    t.equal(await own.connect(address, port), 'ECONNREFUSED');
    t.ok(await reaches(own, '10.200.0.1'));
    await rig.want({ attached, vpn });
    t.notMatch(await rig.inRouter('ip', 'link'), 'lso');
    t.equal(await own.connect(address, port), 'ECONNREFUSED');
  });
});
