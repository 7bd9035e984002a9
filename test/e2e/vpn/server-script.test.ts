/**
 * The documented script on a VPN server: it never takes another program's interface for the
 * network's, or addresses that the server has elsewhere for peers', and loads into strongSwan only
 * what has changed.
 */
import { chmodSync, existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as delay } from 'node:timers/promises';
import t from 'tap';
import { toolHere } from '../../../dev/fetch/tools.ts';
import { ikev2Tools, startStrongswan } from './ikev2.ts';
import { createNetwork, wire } from './netns.ts';
import { startVpnRig } from './rig.ts';
import { prepareScript, skipWithoutScript } from './script.ts';
import { wireguardTools } from './wireguard.ts';

const tools = [...wireguardTools, ...ikev2Tools];
t.setTimeout(150_000);

t.test('the script of a VPN server', { skip: await skipWithoutScript(...tools) }, async (t) => {
  const [rig, wires] = await Promise.all([startVpnRig(t), createNetwork(t, ...tools)]);
  const { server, client } = wires;
  const acme = await rig.client('acme');
  // As if a server of an older release had a network of the name of its network card.
  const pools = { ipv4_pool: '172.30.0.0/24', ipv6_pool: '2001:db8:86::/64' };
  await rig.network({ name: 'wire', endpoint: wire.server.ipv4, ...pools });
  const peer = await rig.peer(acme, { name: 'laptop', network: 'wire' });
  await startStrongswan(server, {});
  // Notes what the script asks of strongSwan.
  const asked = join(server.folder, 'asked');
  const wrapper = join(server.programs, 'swanctl');
  writeFileSync(wrapper, `#!/bin/sh\necho "$1" >> '${asked}'\nexec '${(await toolHere('swanctl')).path}' "$@"\n`);
  chmodSync(wrapper, 0o755);
  const env = {
    STRONGSWAN_CONF: join(server.folder, 'strongswan.conf'),
    WG_QUICK_USERSPACE_IMPLEMENTATION: 'wireguard-go',
  };
  const apply = await prepareScript(t, rig, server, { network: 'wire', env });
  const asks = async (): Promise<string[]> => {
    writeFileSync(asked, '');
    const { code, stderr } = await apply();
    t.equal(code, 0, stderr);
    return readFileSync(asked, 'utf8').split('\n').filter(Boolean);
  };

  const rules = async (): Promise<string> =>
    (await rig.operator.call('GET', '/api/v2/operator/networks/wire/nftables.conf')).text;

  await t.test('loads nothing while another interface has the network’s name', async (t) => {
    const { code, stderr } = await apply();
    t.equal(code, 1);
    t.match(stderr, 'wire is the interface of another program');
    t.notMatch((await server.must('nft', ['list', 'ruleset'])).stdout, 'longshore-wire');
    t.ok(await client.ping(wire.server.ipv4, 5), 'the server answers');
    t.notOk(existsSync(join(server.folder, 'lib/longshore-vpn/wire/nftables.conf')));
  });

  await t.test('even the rules by themselves do not cut the server off', async (t) => {
    writeFileSync(join(server.folder, 'rules'), await rules());
    await server.must('nft', ['-f', 'rules']);
    t.ok(
      await client.ping(wire.server.ipv4, 5),
      `the server answers: ${(await server.must('nft', ['list', 'ruleset'])).stdout}`,
    );
    await server.must('nft', ['delete', 'table', 'inet', 'longshore-wire']);
  });

  await server.must('ip', ['link', 'set', 'dev', 'wire', 'down']);
  await server.must('ip', ['link', 'set', 'dev', 'wire', 'name', 'card']);
  await server.must('ip', ['link', 'set', 'dev', 'card', 'up']);
  // Linux takes them from an interface that goes down.
  await server.must('ip', ['address', 'add', `${wire.server.ipv6}/64`, 'dev', 'card', 'nodad']);

  const at = async (machine: typeof server, change: string, what: readonly string[]): Promise<void> => {
    const family = what.some((word) => word.includes(':')) ? '-6' : '-4';
    await machine.must('ip', [family, what[0] ?? '', change, ...what.slice(1)]);
  };
  const lan: readonly (readonly [server: string, client: string])[] = [
    ['172.30.0.10/24', '172.30.0.20/24'],
    ['2001:db8:86::10/64', '2001:db8:86::20/64'],
  ];
  const onCard = (text: string, device: string): string[] => [
    ...['address', text, 'dev', device],
    ...(text.includes(':') ? ['nodad'] : []),
  ];

  await t.test('the rules do not cut the server off from a network that has the pools’ addresses', async (t) => {
    writeFileSync(join(server.folder, 'rules'), await rules());
    await server.must('nft', ['-f', 'rules']);
    for (const [here, there] of lan) {
      await at(server, 'add', onCard(here, 'card'));
      await at(client, 'add', onCard(there, 'wire'));
      t.ok(await client.ping(here.replace(/\/.*/, ''), 5), `${here} answers`);
      await at(client, 'del', onCard(there, 'wire'));
      await at(server, 'del', onCard(here, 'card'));
    }
    await server.must('nft', ['delete', 'table', 'inet', 'longshore-wire']);
  });

  await t.test('loads nothing while another interface has addresses or routes of the pools', async (t) => {
    const overlaps = [
      ...lan.map(([here]) => onCard(here, 'card')),
      onCard('172.30.0.10/32', 'card'),
      onCard('172.16.0.10/12', 'card'),
      onCard('2001:db8:86::10/48', 'card'),
      ['route', '172.30.0.128/25', 'via', wire.client.ipv4],
      ['route', '2001:db8:86::/64', 'via', wire.client.ipv6],
    ];
    for (const overlap of overlaps) {
      await at(server, 'add', overlap);
      const { code, stderr } = await apply();
      t.equal(code, 1, overlap.join(' '));
      t.match(stderr, /^wire: the pool (172\.30\.0\.0\/24|2001:db8:86::\/64) overlaps .* dev card/m, overlap.join(' '));
      t.notMatch((await server.must('nft', ['list', 'ruleset'])).stdout, 'longshore-wire');
      t.notOk(existsSync(join(server.folder, 'lib/longshore-vpn/wire/nftables.conf')));
      await at(server, 'del', overlap);
    }
  });

  await t.test('loads all at first, and after a change', async (t) => {
    // None of these is in its way: the server's own address on lo, a wider route, and one that
    // leads nowhere.
    await at(server, 'add', onCard('172.30.0.1/32', 'lo'));
    await at(server, 'add', ['route', '172.16.0.0/12', 'via', wire.client.ipv4]);
    await at(server, 'add', ['route', 'unreachable', '2001:db8:86::/64']);
    t.ok((await asks()).includes('--load-all'));
    // strongSwan loads again what was loaded within a second or two of its start.
    let again = await asks();
    for (let left = 20; left > 0 && again.includes('--load-all'); left--) {
      await delay(300);
      again = await asks();
    }
    t.same(again, ['--stats', '--load-creds', '--flush-certs'], 'unchanged: the revocation list alone');
    t.match((await server.must('wg', ['show', 'wire', 'peers'])).stdout, peer.public_key);
    t.ok((await acme.call('DELETE', `/api/forage/peers/${peer.id}`)).status === 204);
    let changed: string[] = [];
    // The network hears of it a moment later.
    for (let left = 20; left > 0 && !changed.includes('--load-all'); left--) changed = await asks();
    t.ok(changed.includes('--load-all'));
  });
});
