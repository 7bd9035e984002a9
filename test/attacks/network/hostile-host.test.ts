/**
 * Two hosts with a mesh between them, and what must reach nobody there: a neighbour on the wire
 * without a key, two hosts with the same container, and an address that another tenant
 * has now, while one host does not know it yet.
 */
import { randomBytes } from 'node:crypto';
import { createSocket } from 'node:dgram';
import t from 'tap';
import { newWireguardKeys } from '../../../lib/wireguard-keys.ts';
import { freePort } from '../../../dev/process/process.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import type { Attachment, NamedMember } from '../../../schemas/wire/net.ts';
import { attachment, startRig, type Rig, type Sandbox } from '../../integration/host-agent/tenant-network/rig.ts';
import { canStartEngine } from '../../support/servers.ts';
import { inCi, skipWithoutTools } from '../../support/tools.ts';
import { until } from '../../support/until.ts';

t.setTimeout(240_000);
const tools = ['nft', 'ping', 'wg', 'wireguard-go'] as const;
const skip =
  canStartEngine || inCi ? await skipWithoutTools(...tools) : 'entering network namespaces needs Linux and root';
const port = 7000;
const ranges = ['10.200.0.0/16', 'fd5e:1:2::/48'];
const [first, second] = ['h1' as HostKey, 'h2' as HostKey];
type Wanted = Parameters<Rig['want']>[0];

const member = ({ id, tenant, ipv4, ipv6 }: Attachment, host: HostKey): NamedMember => ({
  ...{ id, tenant, ipv4, ipv6 },
  name: id,
  host,
});

t.test('two hosts', { skip }, async (t) => {
  const [one, two] = [await startRig(t), await startRig(t)];
  const ports = [await freePort(), await freePort()] as const;
  const sandboxes = await Promise.all([one, one, two, two].map((rig) => rig.sandbox()));
  const [web, spy, store, old] = sandboxes as [Sandbox, Sandbox, Sandbox, Sandbox];
  for (const sandbox of sandboxes) await sandbox.listen(port);
  const webAt = attachment(web, 'demo', 1);
  const storeAt = attachment(store, 'demo', 2);
  const spyAt = attachment(spy, 'other', 3);
  const all = [member(webAt, first), member(storeAt, second), member(spyAt, first)];
  const keyOf = async (rig: Rig, at: number): Promise<string> =>
    (await rig.want({ mesh: { port: at, ends: [] } })).mesh?.key ?? '';
  const keys = [await keyOf(one, ports[0]), await keyOf(two, ports[1])] as const;
  const endOf = (host: HostKey, at: 0 | 1) => ({ host, key: keys[at], address: '127.0.0.1', port: ports[at] });
  const wantOne = (desired: Wanted = {}) =>
    one.want({
      ...{ attached: [webAt, spyAt], members: all },
      mesh: { port: ports[0], ends: [endOf(second, 1)] },
      ...desired,
    });
  const wantTwo = (desired: Wanted = {}) =>
    two.want({ attached: [storeAt], members: all, mesh: { port: ports[1], ends: [endOf(first, 0)] }, ...desired });
  const asBefore = async (): Promise<void> => {
    await wantOne();
    await wantTwo();
    await until('they reach each other', async () =>
      [
        await web.connect('10.200.0.2', port),
        await web.connect('fd5e:1:2::2', port),
        await store.connect('10.200.0.1', port),
      ].every((said) => said === 'ok'),
    );
  };
  await asBefore();
  const heardOf = async (text: string): Promise<string[]> => {
    const heard = await Promise.all(sandboxes.map((sandbox) => sandbox.heard(port)));
    return heard.flat().filter((packet) => packet.endsWith(` ${text}`));
  };

  await t.test('a neighbour on the wire without a key', async (t) => {
    const socket = createSocket('udp4');
    t.teardown(() => socket.close());
    let answered = 0;
    socket.on('message', () => answered++);
    // A message of WireGuard begins with its type; lengths are those of its messages.
    const forms = [
      ...[1, 2, 3, 4].map((type, at) => [type, [148, 92, 64, 96][at] ?? 0] as const),
      ...[0, 1, 7, 255].map((type) => [type, 1200] as const),
    ];
    for (let round = 0; round < 200; round++)
      for (const [type, length] of forms)
        for (const to of ports) {
          const packet = randomBytes(length);
          packet.writeUInt32LE(type);
          socket.send(packet, to, '127.0.0.1');
        }
    t.equal(await web.pings('10.200.0.2', 10), 10, 'the mesh loses nothing');
    t.equal(answered, 0);

    // It knows the public keys, which are no secret, and has one of its own that nobody knows.
    const configuration = [
      '[Interface]',
      `PrivateKey = ${newWireguardKeys().privateKey}`,
      '[Peer]',
      `PublicKey = ${keys[0]}`,
      `Endpoint = 127.0.0.1:${ports[0]}`,
      `AllowedIPs = ${ranges.join(', ')}`,
      '',
    ].join('\n');
    const stranger = await one.device(configuration, ['10.200.0.2/32', 'fd5e:1:2::2/128'], ranges);
    for (const to of ['10.200.0.1', 'fd5e:1:2::1', '10.200.0.3']) {
      t.equal(await stranger.connect(to, port), 'silent', to);
      await stranger.send(to, port, 'of a stranger');
    }
    t.same(await heardOf('of a stranger'), []);
    await asBefore();
  });

  await t.test('two hosts that both have a container: each its own, and others that of the records', async (t) => {
    const [copy, beside, third] = [await two.sandbox(), await two.sandbox(), await one.sandbox()];
    for (const sandbox of [copy, beside, third]) await sandbox.listen(port);
    const copyAt = { ...webAt, namespace: copy.file };
    const besideAt = attachment(beside, 'demo', 6);
    const thirdAt = attachment(third, 'demo', 5);
    const members = [...all, member(besideAt, second), member(thirdAt, first)];
    await wantTwo({ attached: [storeAt, copyAt, besideAt], members });
    await wantOne({ attached: [webAt, spyAt, thirdAt], members });
    await until(
      'those of the records reach each other',
      async () => (await third.connect('10.200.0.6', port)) === 'ok',
    );
    await beside.send('10.200.0.1', port, 'on the second host');
    await third.send('10.200.0.1', port, 'on the first host');
    await until('both are there', async () => (await web.heard(port)).length + (await copy.heard(port)).length >= 2);
    t.same(await copy.heard(port), ['10.200.0.6 on the second host']);
    t.same(await heardOf('on the first host'), ['10.200.0.5 on the first host']);
    await copy.send('10.200.0.5', port, 'of the copy');
    await beside.send('10.200.0.5', port, 'after it');
    await until('a later one is there', async () => (await third.heard(port)).length > 0);
    t.same(await third.heard(port), ['10.200.0.6 after it'], 'the copy reaches nobody on the other host');
    // It is told that the container is not its own.
    await wantTwo({ attached: [storeAt, besideAt], members });
    t.equal(await beside.connect('10.200.0.1', port), 'ok');
    await beside.send('10.200.0.1', port, 'again');
    await until('it is at the true one', async () => (await web.heard(port)).includes('10.200.0.6 again'));
    await asBefore();
  });

  const oldAt = attachment(old, 'demo', 9);
  const fresh = await two.sandbox();
  await fresh.listen(port);
  /** Has the address of `old` now, and is of another tenant. */
  const freshAt = { ...attachment(fresh, 'other', 10), ipv4: oldAt.ipv4 };
  const before = [...all, member(oldAt, second)];
  const now = [...all, member(freshAt, second)];

  await t.test('an address that another tenant has now, while the host of the senders does not know it', async (t) => {
    await wantTwo({ attached: [storeAt, oldAt], members: before });
    await wantOne({ members: before });
    await until('the first has it', async () => (await web.connect('10.200.0.9', port)) === 'ok');
    await wantTwo({ attached: [storeAt, freshAt], members: now });
    for (let round = 0; round < 10; round++) {
      t.not(await web.connect('10.200.0.9', port), 'ok');
      await web.send('10.200.0.9', port, 'for the first');
    }
    t.equal(await spy.connect('10.200.0.9', port), 'ECONNREFUSED', 'that tenant does not reach it yet either');
    t.same(await heardOf('for the first'), []);
    t.same(await fresh.heard(port), []);
    t.equal(await store.connect('10.200.0.9', port), 'ECONNREFUSED', 'nor does the first tenant on the same host');

    await wantOne({ members: now });
    await until('its tenant reaches it', async () => (await spy.connect('10.200.0.9', port)) === 'ok');
    t.equal(await web.connect('10.200.0.9', port), 'ECONNREFUSED');
  });

  await t.test('an address that another tenant has now, while the host of the first still has it there', async (t) => {
    const kept = await one.sandbox();
    await kept.listen(port);
    const keptAt = { ...oldAt, namespace: kept.file };
    const stale = [...all, member(oldAt, first)];
    await wantOne({ attached: [webAt, spyAt, keptAt], members: stale });
    await wantTwo({ attached: [storeAt, freshAt], members: now });
    for (let round = 0; round < 10; round++) {
      await kept.send('10.200.0.2', port, 'of the first');
      t.equal(await spy.connect('10.200.0.9', port), 'ECONNREFUSED', 'the other tenant on the old host');
      t.equal(await store.connect('10.200.0.9', port), 'ECONNREFUSED', 'the first tenant on the new host');
    }
    await web.send('10.200.0.2', port, 'later');
    await until('a later packet is there', async () => (await store.heard(port)).includes('10.200.0.1 later'));
    t.same(await heardOf('of the first'), [], 'nothing from the address passes the mesh');
    t.equal(await web.connect('10.200.0.9', port), 'ok', 'where it still runs, its own tenant reaches it');
    await wantOne({ members: now });
    await until('its tenant reaches it', async () => (await spy.connect('10.200.0.9', port)) === 'ok');
  });

  await t.test('an address that goes to another tenant on one host: no packet goes astray meanwhile', async (t) => {
    const [next, friend] = [await one.sandbox(), await one.sandbox()];
    for (const sandbox of [next, friend]) await sandbox.listen(port);
    const held = attachment(friend, 'other', 12);
    const has = { ...attachment(next, 'other', 11), ipv4: '10.200.0.1' };
    const isTo = (tenant: 'demo' | 'other') =>
      tenant === 'demo'
        ? { attached: [webAt, spyAt, held], members: [...all, member(held, first)] }
        : { attached: [has, spyAt, held], members: [member(has, first), member(spyAt, first), member(held, first)] };
    await friend.flood(['10.200.0.1'], port, Buffer.from('of the other').toString('base64'));
    for (let round = 0; round < 5; round++) {
      await wantOne(isTo('other'));
      await wantOne(isTo('demo'));
    }
    await wantOne(isTo('other'));
    await until('the packets arrive', async () => (await next.heard(port)).length > 0);
    await friend.rest();
    t.same(await heardOf('of the other'), [], 'and none at one of the first tenant');
    await asBefore();
  });
});
