/**
 * The mesh between two hosts of one machine, with real WireGuard: containers of a tenant reach each
 * other, a host speaks for its own containers alone, and what breaks is repaired.
 */
import { readdirSync, readFileSync } from 'node:fs';
import t from 'tap';
import { meshLinkOf } from '../../../../host-agent/tenant-network/link-names.ts';
import type { HostKey } from '../../../../schemas/ids.ts';
import type { Attachment, NamedMember } from '../../../../schemas/wire/net.ts';
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
const [first, second] = ['h1' as HostKey, 'h2' as HostKey];

const member = ({ id, tenant, ipv4, ipv6 }: Attachment, host: HostKey): NamedMember => ({
  id,
  tenant,
  ipv4,
  ipv6,
  name: id,
  host,
});

/** Process ids of programs with this word in their command line. */
function processesOf(word: string): number[] {
  return readdirSync('/proc').flatMap((name) => {
    try {
      const words = readFileSync(`/proc/${name}/cmdline`, 'utf8').split('\0');
      return words.includes(word) ? [Number(name)] : [];
    } catch {
      return [];
    }
  });
}

t.test('two hosts', { skip }, async (t) => {
  const [one, two] = [await startRig(t), await startRig(t)];
  const [portOne, portTwo] = [await freePort(), await freePort()];
  const [web, spy, store] = [await one.sandbox(), await one.sandbox(), await two.sandbox()];
  for (const sandbox of [web, spy, store]) await sandbox.listen(port);
  const [webAt, spyAt, storeAt] = [
    attachment(web, 'demo', 1),
    attachment(spy, 'other', 3),
    attachment(store, 'demo', 2),
  ];
  const members = [member(webAt, first), member(storeAt, second)];

  const keyOf = async (rig: Rig, at: number): Promise<string> =>
    (await rig.want({ mesh: { port: at, ends: [] } })).mesh?.key ?? '';
  const [keyOne, keyTwo] = [await keyOf(one, portOne), await keyOf(two, portTwo)];
  const endOne = { host: first, key: keyOne, address: '127.0.0.1', port: portOne };
  const endTwo = { host: second, key: keyTwo, address: '127.0.0.1', port: portTwo };
  const wantOne = (desired: Partial<Parameters<Rig['want']>[0]> = {}) =>
    one.want({ attached: [webAt, spyAt], members, mesh: { port: portOne, ends: [endTwo] }, ...desired });
  const wantTwo = (desired: Partial<Parameters<Rig['want']>[0]> = {}) =>
    two.want({ attached: [storeAt], members, mesh: { port: portTwo, ends: [endOne] }, ...desired });

  const reaches = async (from: Sandbox, ...addresses: readonly string[]): Promise<boolean> => {
    const ways = await Promise.all(addresses.map((address) => from.connect(address, port)));
    return ways.every((said) => said === 'ok');
  };
  const areJoined = async (): Promise<boolean> =>
    (await reaches(web, '10.200.0.2', 'fd5e:1:2::2')) && (await reaches(store, '10.200.0.1', 'fd5e:1:2::1'));

  await t.test('containers of a tenant reach each other, on every protocol', async (t) => {
    t.same((await wantOne()).mesh, { key: keyOne, message: null });
    t.same((await wantTwo()).mesh, { key: keyTwo, message: null });
    await until('they reach each other', areJoined);
    for (const address of ['10.200.0.2', 'fd5e:1:2::2']) {
      t.ok(await web.ping(address), `ping ${address}`);
      t.equal(await web.send(address, port, `to ${address}`), 'ok');
    }
    await until('both datagrams are there', async () => (await store.heard(port)).length === 2);
  });

  await t.test('another tenant is refused, at once and each time', async (t) => {
    for (let round = 0; round < 10; round++)
      for (const address of ['10.200.0.2', 'fd5e:1:2::2', '10.200.0.99'])
        t.equal(await spy.connect(address, port), 'ECONNREFUSED', address);
  });

  await t.test('a host sends from no address of another host’s container', async (t) => {
    // It says that it runs `web` itself, which the records have on the first host.
    const liar = await two.sandbox();
    const lie = { ...webAt, namespace: liar.file };
    await wantTwo({ attached: [storeAt, lie] });
    const third = await one.sandbox();
    await third.listen(port);
    const thirdAt = attachment(third, 'demo', 5);
    const all = [...members, member(thirdAt, first)];
    await wantOne({ attached: [webAt, spyAt, thirdAt], members: all });
    await wantTwo({ attached: [storeAt, lie], members: all });
    await until('store reaches the third', () => reaches(store, '10.200.0.5'));
    for (const [to, from] of [
      ['10.200.0.5', '10.200.0.1'],
      ['fd5e:1:2::5', 'fd5e:1:2::1'],
    ] as const)
      await liar.send(to, port, 'forged', from);
    // A later message has arrived, so the forged one would have, too.
    await store.send('10.200.0.5', port, 'after');
    await until('the true one is there', async () => (await third.heard(port)).length > 0);
    t.same(await third.heard(port), ['10.200.0.2 after']);
    t.ok(await reaches(third, '10.200.0.1'), 'and the true one answers on its own host');
    await wantOne();
    await wantTwo();
  });

  await t.test('a host that claims the key of another gets nothing of it', async (t) => {
    const thief = { ...endTwo, host: 'h9' as HostKey, port: 9 };
    const stolen = { ...member(attachment(store, 'demo', 8), 'h9' as HostKey) };
    await wantOne({ members: [...members, stolen], mesh: { port: portOne, ends: [endTwo, thief] } });
    t.ok(await areJoined());
    const allowed = await one.inRouter('wg', 'show', meshLinkOf(one.router), 'allowed-ips');
    t.notMatch(allowed, '10.200.0.8');
    await wantOne();
  });

  await t.test('a container that moves is reached at its new place', async (t) => {
    const moved = await one.sandbox();
    await moved.listen(port);
    const here = attachment(moved, 'demo', 2, 'moved');
    await wantOne({ attached: [webAt, spyAt, here] });
    t.ok(await reaches(web, '10.200.0.2', 'fd5e:1:2::2'), 'from the same host, while the list is old');
    await wantTwo({ attached: [], members: [member(webAt, first), member(storeAt, first)] });
    await wantOne();
    await wantTwo();
    await until('it is back', areJoined);
  });

  await t.test('WireGuard killed, its interface deleted, routes gone: all of it comes back', async (t) => {
    const link = meshLinkOf(two.router);
    const broken = {
      'the interface': () => two.inRouter('ip', 'link', 'delete', link),
      'its routes': () => two.inRouter('ip', '-6', 'route', 'flush', 'dev', link),
      'its state': () => two.inRouter('ip', 'link', 'set', link, 'down'),
      'the program': () => {
        for (const id of processesOf(link)) process.kill(id, 'SIGKILL');
        return Promise.resolve('');
      },
    };
    for (const [what, breakIt] of Object.entries(broken)) {
      await breakIt();
      await until(`${what} is repaired`, areJoined);
      t.pass(what);
    }
  });

  await t.test('longshore-net killed: the mesh goes on, with the same key', async (t) => {
    await two.kill();
    t.ok(await areJoined());
    await two.start();
    t.same((await wantTwo()).mesh, { key: keyTwo, message: null });
    t.ok(await areJoined());
  });

  await t.test('without a mesh the other host’s containers are refused', async (t) => {
    t.equal((await wantOne({ mesh: null })).mesh, null);
    t.equal(await web.connect('10.200.0.2', port), 'ECONNREFUSED');
    await until('no process is left', () => processesOf(meshLinkOf(one.router)).length === 0);
  });
});
