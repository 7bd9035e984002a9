/**
 * A tenant's device in a VPN network that two tenants share tries to reach the other tenant's
 * devices, the VPN server's own services and the networks behind it; a neighbour on the wire sends
 * packets with a device's address. None of them may get through.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { eventually } from '../../e2e/support/eventually.ts';
import { createNetwork, wire, type Joined } from '../../e2e/vpn/netns.ts';
import { revokedSerials } from '../../e2e/vpn/revocations.ts';
import { startVpnRig, type NewPeer } from '../../e2e/vpn/rig.ts';
import { prepareScript, skipWithoutScript } from '../../e2e/vpn/script.ts';
import { wireguardTools, wireguardUp, type WireguardEnd } from '../../e2e/vpn/wireguard.ts';

const answerS = 10;
/** Long enough for five packets; if there is a way, one of them is enough for an answer. */
const silenceS = 1;
const inside = { ipv4: '10.86.0.1', ipv6: 'fd86::1' } as const;
const office = {
  name: 'office',
  endpoint: wire.server.ipv4,
  ipv4_pool: '10.86.0.0/24',
  ipv6_pool: 'fd86::/64',
};
const networkPath = '/api/v2/operator/networks/office';
/**
 * The server's addresses on the wire to the machine behind it; devices reach them through their
 * tunnel.
 */
const outside = '198.51.103.1';
/** Addresses of that machine. */
const behind = { public: ['203.0.113.2', '2001:db8:99::2'], private: ['192.168.7.2', 'fd99::2', '169.254.169.254'] };

t.setTimeout(150_000);

const skip = await skipWithoutScript(...wireguardTools, 'openssl');

t.test('two tenants in one network', { skip }, async (t) => {
  const [rig, wires] = await Promise.all([startVpnRig(t), createNetwork(t, ...wireguardTools)]);
  const [acme, bolt] = [await rig.client('acme'), await rig.client('bolt')];
  await rig.network({ ...office, tenants: ['acme', 'bolt'] });
  const names = ['phone', 'tablet', 'rival'] as const;
  const make = (name: (typeof names)[number]) =>
    rig.peer(name === 'rival' ? bolt : acme, { name, network: office.name });
  const [ofPhone, ofTablet, ofRival] = await Promise.all([make('phone'), make('tablet'), make('rival')]);
  const peers = { phone: ofPhone, tablet: ofTablet, rival: ofRival };
  const serverFile = async (name: string): Promise<string> =>
    (await rig.operator.call('GET', `${networkPath}/${name}`)).text;
  const fileWhere = (name: string, what: string, check: (text: string) => boolean): Promise<string> =>
    eventually(what, () => serverFile(name), check);
  const set = (more: object) => {
    const { name: _, ...settings } = office;
    return rig.operator.call<{ data: { tenants: string[] } }>('PUT', networkPath, { ...settings, ...more });
  };

  const { server } = wires;
  const phone = wires.client;
  const [tablet, rival, lan] = [
    await wires.join('tablet', 1),
    await wires.join('rival', 2),
    await wires.join('lan', 3),
  ];
  const machines = { phone, tablet, rival };
  for (const family of ['ipv4/ip_forward', 'ipv6/conf/all/forwarding']) {
    await server.must('sh', ['-c', `echo 1 > /proc/sys/net/${family}`]);
  }
  for (const address of [...behind.public, ...behind.private]) {
    await lan.must('ip', ['address', 'add', address, 'dev', 'lo']);
    await server.must('ip', ['route', 'add', address, 'via', address.includes(':') ? lan.ipv6 : lan.ipv4]);
  }
  const opens = async (from: Joined, host: string, waitS = answerS): Promise<boolean> => {
    const script = `read line < /dev/tcp/${host}/8080 && [ "$line" = hello ]`;
    return (await from.run('timeout', [String(waitS), 'bash', '-c', script])).code === 0;
  };
  const greets = `require('node:net').createServer((socket) => socket.end('hello\\n')).listen(8080, '::')`;
  await server.start({
    name: 'service',
    command: process.execPath,
    args: ['-e', greets],
    ready: () => opens(server, '127.0.0.1'),
    readyDeadlineMs: 20_000,
  });

  const conf = await fileWhere('wireguard.conf', 'all peers are on the server', (text) =>
    names.every((name) => text.includes(peers[name].public_key)),
  );
  const up = await wireguardUp(server, office.name, conf);
  const connectPeer = async (name: (typeof names)[number]): Promise<WireguardEnd> => {
    const { id, download_token } = peers[name];
    const file = await rig.file(`/api/forage/config/${id}?token=${download_token}`);
    return wireguardUp(machines[name], name, file.text);
  };
  const rivalEnd = (await Promise.all(names.map(connectPeer)))[2];
  const addressesOf = ({ ipv4, ipv6 }: NewPeer): string[] => [ipv4, ipv6 ?? 'none'];
  // Probes run at the same time, so the test waits for silence only once.
  const reaches = async (t: Test, from: Joined, addresses: readonly string[], what: string): Promise<void> => {
    const answers = await Promise.all(addresses.map((address) => from.ping(address, answerS)));
    for (const [index, address] of addresses.entries()) t.ok(answers[index], `${what}: ${address} answers`);
  };
  const silent = async (t: Test, from: Joined, addresses: readonly string[], what: string): Promise<void> => {
    const answers = await Promise.all(addresses.map((address) => from.ping(address, silenceS)));
    for (const [index, address] of addresses.entries()) t.notOk(answers[index], `${what}: ${address} is silent`);
  };
  const dropped = async (why: string): Promise<number> => {
    const { stdout } = await server.must('nft', ['list', 'counter', 'inet', 'longshore-office', why]);
    return Number(/packets (\d+)/.exec(stdout)?.[1]);
  };

  await t.test('without the rules every packet passes', async (t) => {
    await Promise.all([
      ...names.map((name) => reaches(t, machines[name], Object.values(inside), `${name} to the server`)),
      reaches(t, phone, addressesOf(peers.rival), 'another tenant’s device'),
      reaches(t, phone, [...behind.private, ...behind.public], 'what is behind the server'),
      reaches(t, lan, addressesOf(peers.phone), 'from outside to a device'),
      ...[inside.ipv4, outside].map(async (host) => t.ok(await opens(phone, host), `the service on ${host}`)),
    ]);
  });

  const runScript = await prepareScript(t, rig, server);
  const apply = async (): Promise<void> => {
    const { code, stderr } = await runScript();
    if (code !== 0) throw new Error(`the script ended with ${code}: ${stderr}`);
  };
  await apply();

  await t.test('with the rules a tenant reaches its own devices and the internet', async (t) => {
    await Promise.all([
      silent(t, phone, addressesOf(peers.rival), 'another tenant’s device'),
      silent(t, rival, [...addressesOf(peers.phone), ...addressesOf(peers.tablet)], 'another tenant’s devices'),
      reaches(t, phone, addressesOf(peers.tablet), 'a device of the same tenant'),
      reaches(t, phone, behind.public, 'the internet'),
      silent(t, phone, behind.private, 'a private network'),
      reaches(t, phone, Object.values(inside), 'the server’s address in the pool'),
      ...[inside.ipv4, outside].map(async (host) =>
        t.notOk(await opens(phone, host, silenceS), `the service on ${host}`),
      ),
      opens(lan, outside).then((isOpen) => t.ok(isOpen, 'the service still answers other machines')),
      silent(t, lan, addressesOf(peers.phone), 'from outside to a device'),
      reaches(t, lan, [wire.server.ipv6], 'what has nothing to do with the VPN'),
    ]);
    t.ok((await dropped('other_tenant')) > 0, 'packets to another tenant are counted');
  });

  await t.test('packets from the wire with a device’s address are dropped', async (t) => {
    await lan.must('ip', ['address', 'add', `${peers.tablet.ipv4}/32`, 'dev', 'lo']);
    const before = await dropped('spoofed');
    await lan.run('ping', ['-n', '-q', '-c', '3', '-i', '0.2', '-w', '1', '-I', peers.tablet.ipv4, peers.phone.ipv4]);
    t.ok((await dropped('spoofed')) > before, 'the packet is dropped and counted');
    await lan.must('ip', ['address', 'del', `${peers.tablet.ipv4}/32`, 'dev', 'lo']);
  });

  await t.test('a private network that the operator names is reachable', async (t) => {
    const put = await set({ routes: ['0.0.0.0/0', '::/0', '192.168.7.0/24'] });
    t.same(put.body.data.tenants, ['acme', 'bolt'], 'a change that names no tenants keeps them');
    await apply();
    await Promise.all([
      reaches(t, phone, ['192.168.7.2'], 'the network that the operator names'),
      silent(t, phone, ['fd99::2', '169.254.169.254'], 'the others'),
      silent(t, phone, addressesOf(peers.rival), 'another tenant’s device'),
    ]);
  });

  await t.test('a disabled device is cut off while its tunnel is up', async (t) => {
    await acme.call('PATCH', `/api/forage/peers/${peers.tablet.id}`, { enabled: false });
    const rules = await fileWhere(
      'nftables.conf',
      'the rules to lose the device',
      (text) => !text.includes(`${peers.tablet.ipv4} : `),
    );
    await reaches(t, tablet, behind.public, 'before the server has fetched the change');
    writeFileSync(join(server.folder, 'rules'), rules);
    await server.must('nft', ['-f', 'rules']);
    t.ok((await up.latestHandshakes()).has(peers.tablet.public_key), 'the tunnel is still up');
    await silent(t, tablet, [...behind.public, ...addressesOf(peers.phone), inside.ipv4], 'anything');
  });

  await t.test('a tenant that is taken off the network is cut off', async (t) => {
    const { id, download_token, pac_token, public_key, certificate } = peers.rival;
    const statuses = async (): Promise<number[]> => [
      (await bolt.call('GET', `/api/forage/config/${id}`)).status,
      (await rig.file(`/api/forage/config/${id}?token=${download_token}`)).status,
      (await rig.file(`/api/forage/pac?token=${pac_token}`)).status,
    ];
    t.equal((await set({ tenants: ['acme'] })).status, 200);
    await apply();
    await silent(t, rival, [...behind.public, ...Object.values(inside)], 'anything');
    t.notOk((await up.latestHandshakes()).has(public_key), 'the server no longer has its device');
    for (const file of ['wireguard.conf', 'swanctl.conf', 'nftables.conf']) {
      const text = await serverFile(file);
      for (const mark of [public_key, id, 'bolt']) t.notOk(text.includes(mark), `nor does ${file}`);
    }
    t.same(await statuses(), [409, 401, 401], 'its files are refused');
    const serials = await eventually(
      'its certificate is on hold',
      async () => revokedSerials((await rig.file('/api/forage/crl/office')).bytes),
      (list) => list.includes(certificate.serial),
    );
    t.notOk(serials.includes(peers.phone.certificate.serial), 'the other tenant’s certificate is not');
    const unknown = await bolt.call('POST', '/api/forage/peers', { name: 'one more', network: 'nowhere' });
    const closed = await bolt.call('POST', '/api/forage/peers', { name: 'one more', network: office.name });
    t.same([closed.status, closed.body], [unknown.status, unknown.body], 'for this tenant the network does not exist');

    t.equal((await set({ tenants: ['acme', 'bolt'] })).status, 200);
    await apply();
    // Without this a device notices only after 15 seconds that its session is gone.
    await rivalEnd?.restart();
    await reaches(t, rival, behind.public, 'the tenant is named again, and its device works with the same file');
    t.same(await statuses(), [200, 200, 200]);
  });

  await t.test('while the API is away the server keeps its rules and reports it', async (t) => {
    await rig.gateway.kill9();
    await server.must('nft', ['delete', 'table', 'inet', 'longshore-office']);
    await t.rejects(apply(), /ended with 1/);
    await Promise.all([
      reaches(t, phone, behind.public, 'the internet'),
      silent(t, phone, addressesOf(peers.rival), 'another tenant’s device'),
    ]);
  });
});
