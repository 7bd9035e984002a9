/**
 * The program of the tenant network with real namespaces: containers of a tenant reach each other
 * by their addresses, nobody else reaches them, and what is broken by hand is repaired.
 */
import { readFileSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { linkOf } from '../../../../host-agent/tenant-network/link-names.ts';
import { containerLink } from '../../../../host-agent/tenant-network/links.ts';
import { canStartEngine } from '../../../support/servers.ts';
import { inCi, skipWithoutTools } from '../../../support/tools.ts';
import { until } from '../../../support/until.ts';
import { attachment, startRig } from './rig.ts';

t.setTimeout(180_000);
const skip =
  canStartEngine || inCi ? await skipWithoutTools('nft', 'ping') : 'entering network namespaces needs Linux and root';
const port = 7000;

t.test('two containers of a tenant, and one of another', { skip }, async (t) => {
  const rig = await startRig(t);
  const [web, store, foreign] = [await rig.sandbox(), await rig.sandbox(), await rig.sandbox()];
  for (const sandbox of [web, store, foreign]) await sandbox.listen(port);
  const all = [attachment(web, 'demo', 1), attachment(store, 'demo', 2), attachment(foreign, 'other', 3)] as const;
  t.same(Object.values(await rig.desire(...all)), [null, null, null]);

  const isWhole = async (): Promise<boolean> => {
    const ways = await Promise.all([
      web.connect('10.200.0.2', port),
      web.connect('fd5e:1:2::2', port),
      store.connect('10.200.0.1', port),
      store.connect('fd5e:1:2::1', port),
    ]);
    return ways.every((said) => said === 'ok');
  };
  const others = ['10.200.0.3', 'fd5e:1:2::3', '10.200.0.77', 'fd5e:1:2::77'];
  const isClosed = async (): Promise<boolean> => {
    const ways = await Promise.all(others.map((address) => web.connect(address, port)));
    return ways.every((said) => said === 'ECONNREFUSED');
  };

  await t.test('those of one tenant reach each other, on every protocol', async (t) => {
    t.ok(await isWhole());
    for (const address of ['10.200.0.2', 'fd5e:1:2::2']) {
      t.ok(await web.ping(address), `ping ${address}`);
      t.equal(await web.send(address, port, `to ${address}`), 'ok');
    }
    await until('both datagrams are there', async () => (await store.heard(port)).length === 2);
    t.same((await store.heard(port)).toSorted(), ['10.200.0.1 to 10.200.0.2', 'fd5e:1:2::1 to fd5e:1:2::2'].toSorted());
  });

  await t.test('a container reaches itself by its own address, and by ::1', async (t) => {
    for (const address of ['10.200.0.1', 'fd5e:1:2::1', '::1'])
      t.equal(await web.connect(address, port), 'ok', address);
  });

  await t.test('an address of another tenant and one that nobody has are refused alike, every time', async (t) => {
    for (let round = 0; round < 25; round++) {
      const ways = await Promise.all(others.map((address) => web.connect(address, port)));
      t.same(ways, ['ECONNREFUSED', 'ECONNREFUSED', 'ECONNREFUSED', 'ECONNREFUSED'], `round ${round}`);
    }
    t.notOk(await web.ping('10.200.0.3'));
    t.notOk(await web.ping('fd5e:1:2::3'));
  });

  await t.test('the router and the host have no service for a container', async (t) => {
    t.equal(await web.connect('169.254.1.1', port), 'ECONNREFUSED');
    const addresses = await web.must('ip', '-br', 'address');
    t.match(addresses, containerLink);
  });

  await t.test("root in a sandbox sends from another's address, and nothing arrives", async (t) => {
    await foreign.must('ip', 'address', 'add', '10.200.0.1/32', 'dev', containerLink);
    await foreign.must('ip', '-6', 'address', 'add', 'fd5e:1:2::1/128', 'dev', containerLink, 'nodad');
    const before = (await store.heard(port)).length;
    await foreign.send('10.200.0.2', port, 'forged', '10.200.0.1');
    await foreign.send('fd5e:1:2::2', port, 'forged', 'fd5e:1:2::1');
    await until('the kernel counts both', async () => {
      const counter = await rig.inRouter('nft', 'list', 'counter', 'inet', 'longshore', 'spoofed');
      return Number(/packets (\d+)/.exec(counter)?.[1]) >= 2;
    });
    t.equal((await store.heard(port)).length, before);
    await foreign.must('ip', 'address', 'delete', '10.200.0.1/32', 'dev', containerLink);
    await foreign.must('ip', '-6', 'address', 'delete', 'fd5e:1:2::1/128', 'dev', containerLink);
  });

  const breaks: readonly (readonly [what: string, command: () => Promise<unknown>])[] = [
    ['the rules are flushed', () => rig.inRouter('nft', 'flush', 'ruleset')],
    ['a set is emptied, and a container comes', () => rig.inRouter('nft', 'flush', 'set', 'inet', 'longshore', 'own4')],
    ['an end in the router is deleted', () => rig.inRouter('ip', 'link', 'delete', linkOf(all[0]))],
    ['an end in a sandbox is deleted', () => store.must('ip', 'link', 'delete', containerLink)],
    ['an end is switched off', () => rig.inRouter('ip', 'link', 'set', linkOf(all[1]), 'down')],
    ['a route is deleted', () => rig.inRouter('ip', 'route', 'delete', '10.200.0.2')],
    ['neighbours are forgotten', () => rig.inRouter('ip', 'neigh', 'delete', '10.200.0.2', 'dev', linkOf(all[1]))],
  ];
  for (const [what, breakIt] of breaks) {
    await t.test(`${what}: it is repaired`, async (t) => {
      await breakIt();
      if (what.startsWith('a set')) await rig.desire(all[0], all[1], { ...all[2], run: 'second' });
      await until('all is as before', async () => (await isWhole()) && (await isClosed()));
      t.pass();
      await rig.desire(...all);
    });
  }

  await t.test(
    'the program is killed: everything goes on, and the next one keeps the last desired state',
    async (t) => {
      await rig.kill();
      t.ok(await isWhole());
      t.ok(await isClosed());
      await rig.inRouter('ip', 'link', 'delete', linkOf(all[0]));
      await rig.start();
      await until('it is repaired without being asked again', isWhole);
      t.ok(await isClosed());
    },
  );

  await t.test('an address that goes to another tenant is cut from the first at once', async (t) => {
    t.same(Object.values(await rig.desire(all[0], { ...all[1], tenant: all[2].tenant }, all[2])), [null, null, null]);
    t.equal(await web.connect('10.200.0.2', port), 'ECONNREFUSED');
    t.equal(await foreign.connect('10.200.0.2', port), 'ok');
    await rig.desire(...all);
    t.ok(await isWhole());
  });

  await t.test('a namespace that is no sandbox is left alone, and said', async (t) => {
    const wrong = {
      'the host': '/proc/1/ns/net',
      'the router': `/run/netns/${rig.router}`,
      none: '/run/netns/there-is-none',
      'a path with dots': `/run/netns/../netns/../../proc/1/ns/net`,
    };
    const host = (): Promise<string> => web.must('cat', '/proc/net/dev');
    const before = await host();
    const broken = Object.values(wrong).map((namespace, at) => ({ ...attachment(web, 'demo', 10 + at), namespace }));
    const said = await rig.desire(...all, ...broken);
    t.same(Object.values(said).slice(0, 3), [null, null, null], 'the others are attached');
    for (const { id, namespace } of broken) t.match(said[id], /namespace|is not in/, namespace);
    t.equal((await host()).split('\n').length, before.split('\n').length);
    t.ok(await isWhole());
    await rig.desire(...all);
  });

  await t.test('a container that floods the resolvers is held up, and no other', async (t) => {
    const resolver = 'fd5e:1:2::53';
    const flooded = async (): Promise<number> => {
      const counter = await rig.inRouter('nft', 'list', 'counter', 'inet', 'longshore', 'flooded');
      return Number(/packets (\d+)/.exec(counter)?.[1]);
    };
    t.equal(await flooded(), 0);
    for (let round = 0; round < 30 && (await flooded()) === 0; round++)
      await Promise.all(Array.from({ length: 500 }, () => foreign.send(resolver, 53, 'x')));
    t.ok((await flooded()) > 0);
    t.ok(await web.ping(resolver));
  });

  await t.test('if nothing can be written, the kernel follows, and the agent hears why', async (t) => {
    rmSync(rig.names, { recursive: true });
    writeFileSync(rig.names, '');
    await t.rejects(rig.desire(all[0], all[2]), /503.*EEXIST/);
    t.equal(await web.connect('10.200.0.2', port), 'ECONNREFUSED');
    rmSync(rig.names);
    t.same(Object.values(await rig.desire(all[0], all[2])), [null, null], 'the same again');
    t.match(readFileSync(join(rig.names, 'names.json'), 'utf8'), '10.200.0.3');
    await rig.desire(...all);
    t.ok(await isWhole());
  });

  await t.test('a body that is no desired network is refused, and changes nothing', async (t) => {
    for (const body of ['', '[]', '{"v":1}', JSON.stringify({ v: 1, ranges: {}, mtu: 1, attached: [] })])
      t.equal((await rig.put(body)).status, 400, body);
    t.equal((await rig.put(`"${'x'.repeat(2 ** 24)}"`)).status, 413);
    const none = { ipv4: null, ipv6: 'fd5e:1:2::/48' };
    const another = { v: 1, owner: 'h2', ranges: none, mtu: 1420, attached: [], members: [], vpn: [], mesh: null };
    t.match(await rig.put(JSON.stringify(another)), { status: 409, body: /it is of the agent h1/ });
    t.ok(await isWhole());
  });

  await t.test('a network that is no longer desired is gone from the kernel', async (t) => {
    await rig.desire(all[0]);
    t.equal(await web.connect('10.200.0.2', port), 'ECONNREFUSED');
    const links = await rig.inRouter('ip', '-br', 'link');
    t.match(links, linkOf(all[0]));
    t.notMatch(links, linkOf(all[1]));
    t.notMatch(await store.must('ip', '-br', 'link'), containerLink);
  });
});
