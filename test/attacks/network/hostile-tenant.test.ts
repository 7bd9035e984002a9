/**
 * Root in a sandbox of a hostile tenant, on a host that it shares: it takes names and addresses of
 * another tenant, makes routes of its own, lies about hardware addresses, and floods the resolvers.
 */
import * as dns from 'dns-packet';
import t from 'tap';
import { linkOf } from '../../../host-agent/tenant-network/link-names.ts';
import { containerLink } from '../../../host-agent/tenant-network/links.ts';
import { framed } from '../../../host-agent/tenant-network/names/frames.ts';
import { attachment, startRig, type Sandbox } from '../../integration/host-agent/tenant-network/rig.ts';
import type { HostKey } from '../../../schemas/ids.ts';
import type { Attachment, NamedMember } from '../../../schemas/wire/net.ts';
import { canStartEngine } from '../../support/servers.ts';
import { inCi, skipWithoutTools } from '../../support/tools.ts';
import { until } from '../../support/until.ts';

t.setTimeout(240_000);
const skip =
  canStartEngine || inCi ? await skipWithoutTools('nft', 'ping') : 'entering network namespaces needs Linux and root';
const port = 7000;
const resolvers = ['fd5e:1:2::53', 'fd5e:1:2::54'];
/** The hardware address of a sandbox's link. */
const macOf = async (sandbox: Sandbox): Promise<string> =>
  (await sandbox.must('ip', '-br', 'link', 'show', 'dev', containerLink)).split(/\s+/)[2] ?? '';
const named = ({ id, tenant, ipv4, ipv6 }: Attachment, name: string): NamedMember => ({
  id,
  tenant,
  ipv4,
  ipv6,
  name,
  host: 'h1' as HostKey,
});

t.test('a hostile tenant', { skip }, async (t) => {
  const rig = await startRig(t);
  const [web, store, thief] = [await rig.sandbox(), await rig.sandbox(), await rig.sandbox()];
  for (const sandbox of [web, store, thief]) await sandbox.listen(port);
  const all = [attachment(web, 'demo', 1), attachment(store, 'demo', 2), attachment(thief, 'other', 3)] as const;
  const addresses = ({ ipv4, ipv6 }: Attachment): string[] => [ipv4 ?? '', ipv6];
  const theirs = [...addresses(all[0]), ...addresses(all[1])];
  const members = [
    named(all[0], 'web'),
    named(all[1], 'store'),
    ...['store', 'a_b', 'WEB', '-x', 'two.parts'].map((name, at) => ({
      ...named(all[2], name),
      id: attachment(thief, 'other', 3 + at).id,
    })),
  ];
  const keep = async (): Promise<void> => {
    const { attached } = await rig.want({ attached: [...all], members });
    t.same(Object.values(attached), [null, null, null]);
  };
  await keep();
  rig.resolvers();
  const asks = (from: Sandbox, name: string): Promise<string> => from.ask(resolvers, name, 'AAAA');
  await until('the resolvers answer', async () => (await asks(web, 'store')) === all[1].ipv6);

  /** The tenant reaches its own, and none of its containers has heard anything of another. */
  const isUntouched = async (): Promise<boolean> => {
    const ways = await Promise.all(addresses(all[1]).map((address) => web.connect(address, port)));
    return ways.every((said) => said === 'ok') && (await asks(web, 'store')) === all[1].ipv6;
  };
  const heard = async (): Promise<string[]> => [...(await web.heard(port)), ...(await store.heard(port))];

  await t.test('names like another’s lead to its own containers, and names that are no labels nowhere', async (t) => {
    t.equal(await asks(web, 'store'), all[1].ipv6);
    t.equal(await asks(thief, 'store'), all[2].ipv6);
    t.equal(await asks(thief, 'web'), all[2].ipv6, 'its own WEB');
    t.equal(await asks(web, 'web'), all[0].ipv6);
    for (const name of ['a_b', '-x', 'two.parts.internal', 'store.demo.internal', 'demo.internal', '*.internal'])
      t.match(await asks(thief, name), /^E(NOTFOUND|BADNAME|FORMERR)$/, name);
    for (const name of ['a_b', 'two.parts.internal']) t.match(await asks(web, name), /^ENOTFOUND$/, name);
    t.ok(await isUntouched());
  });

  await t.test('routes of its own lead to nobody else', async (t) => {
    const routes = [
      'route replace default via 169.254.1.1',
      'route replace 10.0.0.0/8 via 169.254.1.1',
      'route replace 127.0.0.0/8 via 169.254.1.1',
      '-6 route replace default via fe80::1',
      '-6 route replace fd00::/8 via fe80::1',
    ];
    for (const route of routes) await thief.must('ip', ...route.split(' '), 'dev', containerLink);
    for (const address of [...theirs, '10.201.0.1', '192.0.2.1', 'fd5e:1:3::1', '2001:db8::1', '169.254.1.1'])
      t.equal(await thief.connect(address, port), 'ECONNREFUSED', address);
    for (const address of theirs) await thief.send(address, port, 'routed');
    t.same(await heard(), []);
    t.ok(await isUntouched());
    await keep();
  });

  await t.test('it sends as another container, as a resolver and as the router', async (t) => {
    const before = await rig.counted('spoofed');
    const taken = [...theirs, '10.200.0.53', ...resolvers, '169.254.1.1', 'fd5e:1:2::77', '192.0.2.7'];
    for (const address of taken) {
      const [family, length] = address.includes(':') ? ['-6', 128] : ['-4', 32];
      await thief.must('ip', family, 'address', 'add', `${address}/${length}`, 'dev', containerLink, 'nodad');
      for (const to of theirs.filter((each) => each.includes(':') === address.includes(':') && each !== address))
        await thief.send(to, port, 'forged', address);
      await thief.must('ip', family, 'address', 'delete', `${address}/${length}`, 'dev', containerLink);
    }
    await until('the kernel counts them', async () => (await rig.counted('spoofed')) >= before + taken.length);
    t.same(await heard(), []);
    await keep();
    t.ok(await isUntouched());
  });

  await t.test('with another’s hardware address, and questions about neighbours, it gets nothing', async (t) => {
    const neighbours = async (): Promise<string[]> => {
      const shown = await rig.inRouter('sh', '-c', 'ip -4 neigh show; ip -6 neigh show');
      return shown.split('\n').filter((line) => line !== '' && !line.includes('PERMANENT'));
    };
    t.same(await neighbours(), []);
    const [own, stolen] = [await macOf(thief), await macOf(store)];
    await thief.must('sh', '-c', `echo 1 > /proc/sys/net/ipv4/conf/${containerLink}/arp_notify`);
    await thief.must('ip', 'link', 'set', containerLink, 'address', stolen);
    const [gateway, asked] = ['169.254.1.1', '10.200.0.53'];
    for (const address of ['10.200.0.1', '10.200.0.2', ...Array.from({ length: 50 }, (_, at) => `10.200.9.${at}`)]) {
      await thief.must('ip', 'address', 'add', `${address}/32`, 'dev', containerLink);
      // It asks by ARP who has the resolver, in the name of that address.
      await thief.must('ip', 'route', 'replace', asked, 'dev', containerLink, 'src', address);
      await thief.must(
        'sh',
        '-c',
        `ip neigh delete ${gateway} dev ${containerLink}; ip neigh flush dev ${containerLink}`,
      );
      await thief.send(asked, 53, 'x', address);
      await thief.must('ip', 'address', 'delete', `${address}/32`, 'dev', containerLink);
    }
    await thief.must('ip', '-6', 'address', 'add', 'fe80::7/64', 'dev', containerLink, 'nodad');
    await thief.send('fe80::1%ls0', 53, 'x');
    t.same(await neighbours(), [], 'the router learns nothing');
    for (let round = 0; round < 20; round++) t.ok(await isUntouched());
    t.same(await heard(), []);
    await thief.must('ip', 'link', 'set', containerLink, 'address', own);
    await thief.must('ip', 'link', 'delete', containerLink);
    await until('it has a whole link again', async () => (await asks(thief, 'store')) === all[2].ipv6);
  });

  await t.test('routes in the router that lead to it bring it nothing of another', async (t) => {
    await rig.kill();
    const [link, mac] = [linkOf(all[2]), await macOf(thief)];
    for (const address of addresses(all[1])) {
      const [family, length] = address.includes(':') ? ['-6', 128] : ['-4', 32];
      await rig.inRouter('ip', family, 'neigh', 'replace', address, 'lladdr', mac, 'dev', link, 'nud', 'permanent');
      await rig.inRouter('ip', family, 'route', 'replace', `${address}/${length}`, 'dev', link);
      await thief.must('ip', family, 'address', 'add', `${address}/${length}`, 'dev', containerLink, 'nodad');
    }
    const before = await rig.counted('misled');
    for (const address of addresses(all[1])) await web.send(address, port, 'for the store');
    await until('the kernel counts both', async () => (await rig.counted('misled')) >= before + 2);
    t.same(await thief.heard(port), []);
    for (const address of addresses(all[1])) {
      const [family, length] = address.includes(':') ? ['-6', 128] : ['-4', 32];
      await thief.must('ip', family, 'address', 'delete', `${address}/${length}`, 'dev', containerLink);
    }
    await rig.start();
    await until('the routes are repaired', isUntouched);
  });

  const query = dns.encode({ type: 'query', id: 7, questions: [{ type: 'AAAA', name: 'store' }] });
  /** Neither is answered late by the questions of another. */
  const stillAnswers = async (): Promise<void> => {
    for (let round = 0; round < 20; round++) t.equal(await asks(web, 'store'), all[1].ipv6, `question ${round}`);
  };

  await t.test('a flood of datagrams to the resolvers', async () => {
    const before = await rig.counted('flooded');
    await thief.flood([...resolvers, '10.200.0.53'], 53, query.toString('base64'));
    await until('some are dropped', async () => (await rig.counted('flooded')) > before);
    await stillAnswers();
    await thief.rest();
  });

  await t.test('connections full of questions, whose answers it reads', async (t) => {
    const many = Buffer.concat(Array.from({ length: 1000 }, () => framed(query)));
    for (const resolver of resolvers) t.ok((await thief.pour(resolver, 53, 16, many.toString('base64'), true)) > 0);
    await stillAnswers();
    await thief.rest();
  });

  await t.test('connections full of questions, whose answers it does not read', async (t) => {
    const many = Buffer.concat(Array.from({ length: 1000 }, () => framed(query)));
    for (const resolver of resolvers) t.ok((await thief.pour(resolver, 53, 16, many.toString('base64'), false)) > 0);
    await stillAnswers();
    let before = -1;
    await until('the resolvers take no more', async () => {
      const last = before;
      before = await thief.poured();
      return before === last;
    });
    await thief.rest();
  });
});
