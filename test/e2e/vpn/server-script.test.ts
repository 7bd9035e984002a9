/**
 * The documented script on a VPN server: it never takes another program's interface for the
 * network's, and loads into strongSwan only what has changed.
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
  await rig.network({ name: 'wire', endpoint: wire.server.ipv4, ipv4_pool: '10.86.0.0/24' });
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

  await t.test('loads nothing while another interface has the network’s name', async (t) => {
    const { code, stderr } = await apply();
    t.equal(code, 1);
    t.match(stderr, 'wire is the interface of another program');
    t.notMatch((await server.must('nft', ['list', 'ruleset'])).stdout, 'longshore-wire');
    t.ok(await client.ping(wire.server.ipv4, 5), 'the server answers');
    t.notOk(existsSync(join(server.folder, 'lib/longshore-vpn/wire/nftables.conf')));
  });

  await t.test('even the rules by themselves do not cut the server off', async (t) => {
    const rules = (await rig.operator.call('GET', '/api/v2/operator/networks/wire/nftables.conf')).text;
    writeFileSync(join(server.folder, 'rules'), rules);
    await server.must('nft', ['-f', 'rules']);
    t.ok(
      await client.ping(wire.server.ipv4, 5),
      `the server answers: ${(await server.must('nft', ['list', 'ruleset'])).stdout}`,
    );
    await server.must('nft', ['delete', 'table', 'inet', 'longshore-wire']);
  });

  await t.test('loads all at first, and after a change', async (t) => {
    await server.must('ip', ['link', 'set', 'dev', 'wire', 'down']);
    await server.must('ip', ['link', 'set', 'dev', 'wire', 'name', 'card']);
    await server.must('ip', ['link', 'set', 'dev', 'card', 'up']);
    t.ok((await asks()).includes('--load-all'));
    // What is loaded within a second or two of strongSwan's start is loaded again.
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
