/**
 * WireGuard connects with downloaded files: the operator downloads the server's, a device its own
 * by token.
 */
import t from 'tap';
import type { PeerView } from '../../../schemas/api/peer.ts';
import { eventually } from '../support/eventually.ts';
import { createNetwork, skipWithoutNetwork, wire } from './netns.ts';
import { attachmentName, startVpnRig, type NewPeer, type VpnRig } from './rig.ts';
import { wireguardTools, wireguardUp } from './wireguard.ts';

const answerS = 10;
/** Enough for five packets; over a working route one gets through. */
const silenceS = 1;

const serverConf = async (rig: VpnRig, network: string): Promise<string> => {
  const answer = await rig.operator.call('GET', `/api/v2/operator/networks/${network}/wireguard.conf`);
  if (answer.status !== 200) throw new Error(`${answer.status} ${answer.text}`);
  return answer.text;
};

/** Waits, because the owner of the peer updates the network soon after it has answered. */
const serverConfWhere = (rig: VpnRig, network: string, what: string, check: (conf: string) => boolean) =>
  eventually(what, () => serverConf(rig, network), check);

/** The downloaded file: its name, which becomes the interface's, and its text. */
async function download(rig: VpnRig, peer: NewPeer): Promise<readonly [name: string, conf: string]> {
  const file = await rig.file(`/api/forage/config/${peer.id}?token=${peer.download_token}`);
  return [attachmentName(file).replace(/\.conf$/, ''), file.text];
}

/** An address of the server to which only the device's default route leads. */
const far = '203.0.113.1';

const cases = [
  {
    of: 'all traffic, in halves, through the tunnel, to an IPv4 endpoint',
    network: {
      ...{ name: 'office', endpoint: far, dns: ['10.86.0.1', 'fd86::1'] },
      routes: ['0.0.0.0/1', '128.0.0.0/1', '::/1', '8000::/1'],
    },
    pools: { ipv4_pool: '10.86.0.0/24', ipv6_pool: 'fd86::/64' },
    server: ['10.86.0.1', 'fd86::1'],
    nameservers: ['10.86.0.1', 'fd86::1'],
  },
  {
    of: 'only the network’s routes through the tunnel, to an IPv6 endpoint',
    network: { name: 'lab', endpoint: wire.server.ipv6, routes: ['10.99.0.0/24', 'fd99::/64'], mtu: 1380 },
    pools: { ipv4_pool: '10.99.0.0/24', ipv6_pool: 'fd99::/64' },
    server: ['10.99.0.1', 'fd99::1'],
    nameservers: [],
  },
] as const;

t.setTimeout(150_000);

t.test('WireGuard connections', { skip: await skipWithoutNetwork(...wireguardTools) }, async (t) => {
  const rig = await startVpnRig(t);
  const acme = await rig.client('acme');

  for (const { of, network, pools, server: addresses, nameservers } of cases) {
    await t.test(of, async (t) => {
      await rig.network({ ...network, ...pools });
      const phone = await rig.peer(acme, { name: "Anna's phone ☎", network: network.name });
      const wires = await createNetwork(t, ...wireguardTools);
      await wires.server.must('ip', ['address', 'add', far, 'dev', 'lo']);
      const reached = (address: string): Promise<boolean> => wires.client.ping(address, answerS);
      const silent = async (address: string): Promise<boolean> => !(await wires.client.ping(address, silenceS));
      const current = await serverConfWhere(rig, network.name, 'the peer is on the server', (conf) =>
        conf.includes(phone.public_key),
      );
      const server = await wireguardUp(wires.server, network.name, current);
      t.ok(await silent(addresses[0]), 'without its file the device does not reach the server');

      const [name, conf] = await download(rig, phone);
      const startMs = performance.now();
      const client = await wireguardUp(wires.client, name, conf);
      for (const address of addresses) t.ok(await reached(address), `${address} answers`);
      t.comment(`connected after ${Math.round(performance.now() - startMs)} ms`);
      const [, firstS] = [...(await client.latestHandshakes())][0] ?? [];
      t.ok(firstS !== undefined && firstS > 0, 'the device has a handshake');
      t.ok(((await server.latestHandshakes()).get(phone.public_key) ?? 0) > 0, 'the server has a handshake');
      t.same(client.nameservers(), nameservers, 'the device uses the resolvers of the network');

      t.test('adding a peer does not end connections', async (t) => {
        const other = await rig.peer(acme, { name: `laptop-${network.name}`, network: network.name });
        const more = await serverConfWhere(rig, network.name, 'both peers are on the server', (text) =>
          text.includes(other.public_key),
        );
        const before = await server.latestHandshakes();
        await server.syncconf(more);
        const after = await server.latestHandshakes();
        t.same([...after.keys()].toSorted(), [phone.public_key, other.public_key].toSorted());
        t.equal(after.get(phone.public_key), before.get(phone.public_key), 'there was no second handshake');
        for (const address of addresses) t.ok(await reached(address), `${address} answers`);
      });

      t.test('a disabled peer is cut off; enabled, it connects again with the same file', async (t) => {
        const set = async (enabled: boolean): Promise<void> => {
          const answer = await acme.call<{ data: PeerView }>('PATCH', `/api/forage/peers/${phone.id}`, { enabled });
          t.equal(answer.status, 200);
          await server.syncconf(
            await serverConfWhere(
              rig,
              network.name,
              `enabled: ${enabled}`,
              (text) => text.includes(phone.public_key) === enabled,
            ),
          );
        };
        await set(false);
        for (const address of addresses) t.ok(await silent(address), `${address} is silent`);
        await set(true);
        // By itself the device notices after 15 seconds that its session is gone.
        await client.restart();
        for (const address of addresses) t.ok(await reached(address), `${address} answers`);
      });

      t.test('a removed peer is cut off', async (t) => {
        t.equal((await acme.call('DELETE', `/api/forage/peers/${phone.id}`)).status, 204);
        const fewer = await serverConfWhere(
          rig,
          network.name,
          'the server no longer has the peer',
          (text) => !text.includes(phone.public_key),
        );
        await server.syncconf(fewer);
        t.notOk((await server.latestHandshakes()).has(phone.public_key), 'the server does not know the peer');
        const before = await client.latestHandshakes();
        for (const address of addresses) t.ok(await silent(address), `${address} is silent`);
        t.same(await client.latestHandshakes(), before, 'there is no new handshake');
      });
    });
  }
});
