/** Answers of a host's resolvers to its containers, packet by packet. */
import * as dns from 'dns-packet';
import t from 'tap';
import { reactTo } from '../../../../host-agent/tenant-network/names/answer.ts';
import { namesKnown } from '../../../../host-agent/tenant-network/names/known.ts';
import { zonesOf } from '../../../../host-agent/tenant-network/names/zones.ts';
import type { ContainerId, TenantId } from '../../../../schemas/ids.ts';
import type { Attachment, NamedMember } from '../../../../schemas/wire/net.ts';

const ranges = { ipv4: '10.200.0.0/16', ipv6: 'fd5e:1:2::/48' };
const idOf = (at: number) => `00000000-0000-7000-8000-${String(at).padStart(12, '0')}` as ContainerId;
const addressesOf = (at: number) => ({ ipv4: `10.200.0.${at}`, ipv6: `fd5e:1:2:1::${at}` });

const member = (at: number, tenant: string, name: string, more: Partial<NamedMember> = {}): NamedMember => ({
  id: idOf(at),
  tenant: tenant as TenantId,
  name,
  host: null,
  ...addressesOf(at),
  ...more,
});
const attached = (at: number, tenant: string): Attachment => ({
  id: idOf(at),
  tenant: tenant as TenantId,
  namespace: '/run/netns/x',
  run: 'first',
  ...addressesOf(at),
});

const members = [
  member(1, 'acme', 'web', { project: 'shop' }),
  member(2, 'acme', 'store', { project: 'shop', aliases: ['db', 'web'] }),
  member(3, 'acme', 'other-store', { project: 'blog', aliases: ['db'] }),
  member(4, 'acme', 'a_b'),
  member(5, 'acme', 'Big'),
  member(6, 'acme', 'big'),
  member(7, 'acme', 'only-ipv6', { ipv4: null }),
  member(8, 'globex', 'secret'),
];
const zones = zonesOf(
  namesKnown({
    ranges,
    attached: [attached(1, 'acme'), attached(3, 'acme'), attached(4, 'acme'), attached(8, 'globex')],
    members,
    vpn: [],
  }),
);
const web = addressesOf(1).ipv6;
const blog = addressesOf(3).ipv6;
const alone = addressesOf(4).ipv6;

const query = (name: string, type: dns.RecordType = 'AAAA', more: Partial<dns.Packet> = {}): Buffer =>
  dns.encode({ type: 'query', id: 7, flags: dns.RECURSION_DESIRED, questions: [{ type, name }], ...more });

function ask(bytes: Buffer, source = web, transport: 'udp' | 'tcp' = 'udp') {
  const reaction = reactTo(bytes, source, transport, zones);
  if (reaction.kind !== 'answer') return reaction.kind;
  const packet = dns.decode(reaction.bytes);
  const found = (packet.answers ?? []).map((answer) => ('data' in answer ? answer.data : undefined));
  return { ...packet, code: (packet as { rcode?: string }).rcode, found };
}

const codeOf = (answer: ReturnType<typeof ask>) => (typeof answer === 'string' ? answer : answer.code);
const foundIn = (answer: ReturnType<typeof ask>) => (typeof answer === 'string' ? answer : answer.found);

t.test('names of the tenant, in both families and in every spelling', (t) => {
  for (const name of ['only-ipv6', 'only-ipv6.internal', 'ONLY-ipv6', 'Only-IPv6.Internal']) {
    const answer = ask(query(name));
    t.same(foundIn(answer), ['fd5e:1:2:1::7'], name);
    t.match(
      answer,
      { id: 7, flag_aa: true, flag_rd: true, questions: [{ name }] },
      'the question comes back as it was',
    );
    t.match(answer, { answers: [{ name, ttl: 5 }] });
  }
  t.same(foundIn(ask(query('store', 'A'))), ['10.200.0.2']);
  t.end();
});

t.test('a name without such a record is no error; an unknown name is', (t) => {
  for (const [name, type] of [
    ['only-ipv6', 'A'],
    ['store', 'MX'],
    ['internal', 'AAAA'],
  ] as const) {
    const answer = ask(query(name, type));
    t.equal(codeOf(answer), 'NOERROR', name);
    t.match(answer, { found: [], authorities: [{ type: 'SOA', name: 'internal', ttl: 1 }] });
  }
  for (const name of ['nobody', 'nobody.internal', 'a.store.internal', 'a_b', 'secret', 'secret.internal']) {
    const answer = ask(query(name));
    t.equal(codeOf(answer), 'NXDOMAIN', name);
    t.match(answer, { found: [], authorities: [{ type: 'SOA' }] });
  }
  t.end();
});

t.test('an alias is for its own project, and comes before a name', (t) => {
  t.same(foundIn(ask(query('db'))), ['fd5e:1:2:1::2']);
  t.same(foundIn(ask(query('db'), blog)), ['fd5e:1:2:1::3']);
  t.equal(codeOf(ask(query('db'), alone)), 'NXDOMAIN');
  t.same(foundIn(ask(query('web'))), ['fd5e:1:2:1::2'], 'an alias');
  t.same(foundIn(ask(query('web'), alone)), ['fd5e:1:2:1::1'], 'a name');
  t.end();
});

t.test('of two names that DNS cannot tell apart, the one in lower case counts', (t) => {
  t.same(foundIn(ask(query('Big'))), ['fd5e:1:2:1::6']);
  t.end();
});

t.test('addresses lead back to names of the same tenant, and no further', (t) => {
  const nibbles = (at: number): string => `${at}${'.0'.repeat(15)}.1.0.0.0.2.0.0.0.1.0.0.0.e.5.d.f.ip6.arpa`;
  t.same(foundIn(ask(query(nibbles(2), 'PTR'))), ['store.internal']);
  t.same(foundIn(ask(query('2.0.200.10.in-addr.arpa', 'PTR'))), ['store.internal']);
  t.equal(codeOf(ask(query(nibbles(8), 'PTR'))), 'NXDOMAIN', 'of another tenant');
  t.equal(codeOf(ask(query('99.0.200.10.in-addr.arpa', 'PTR'))), 'NXDOMAIN');
  t.equal(ask(query('8.8.8.8.in-addr.arpa', 'PTR')), 'forward');
  t.end();
});

t.test('the rest is for the name servers of the host', (t) => {
  for (const name of ['', 'example.com', 'internal.example', 'web.internal.example.com'])
    t.equal(ask(query(name)), 'forward');
  t.end();
});

t.test('a sender that is no container of this host hears nothing', (t) => {
  for (const source of [addressesOf(2).ipv6, '192.0.2.1', 'nonsense'])
    t.equal(codeOf(ask(query('web'), source)), 'REFUSED', source);
  t.same(foundIn(ask(query('secret'), addressesOf(8).ipv6)), ['fd5e:1:2:1::8']);
  t.equal(codeOf(ask(query('web'), addressesOf(8).ipv6)), 'NXDOMAIN');
  t.end();
});

t.test('packets that are no query, or none that can be understood', (t) => {
  t.equal(ask(Buffer.alloc(0)), 'ignore');
  t.equal(ask(Buffer.alloc(11)), 'ignore');
  t.equal(ask(dns.encode({ type: 'response', id: 7 })), 'ignore', 'an answer is never answered');
  t.equal(codeOf(ask(Buffer.alloc(12))), 'FORMERR', 'no question');
  const two = query('web', 'A', {
    questions: [
      { type: 'A', name: 'web' },
      { type: 'A', name: 'store' },
    ],
  });
  t.equal(codeOf(ask(two)), 'FORMERR');
  const cut = query('web').subarray(0, -3);
  t.equal(codeOf(ask(cut)), 'FORMERR');
  const update = query('web');
  update[2] = 5 << 3;
  t.equal(codeOf(ask(update)), 'NOTIMP');
  t.equal(codeOf(ask(query('web', 'TXT', { questions: [{ type: 'TXT', name: 'version', class: 'CH' }] }))), 'REFUSED');
  t.equal(codeOf(ask(query('wéb'))), 'FORMERR');
  t.end();
});

t.test('an answer that is too long for its transport says so', (t) => {
  const aliased = Array.from({ length: 100 }, (_, at) =>
    member(100 + at, 'acme', `copy-${at}`, {
      project: 'shop',
      aliases: ['many'],
      ipv4: null,
      ipv6: `fd5e:1:2:1::${at}`,
    }),
  );
  const wide = zonesOf(
    namesKnown({
      ranges,
      attached: [attached(1, 'acme')],
      members: [...members, ...aliased],
      vpn: [],
    }),
  );
  const bytes = (transport: 'udp' | 'tcp', more: Partial<dns.Packet> = {}) => {
    const reaction = reactTo(query('many', 'AAAA', more), web, transport, wide);
    return reaction.kind === 'answer' ? reaction.bytes : Buffer.alloc(0);
  };
  t.match(dns.decode(bytes('udp')), { flag_tc: true, answers: [] });
  t.ok(bytes('udp').byteLength <= 512);
  t.equal(dns.decode(bytes('tcp')).answers?.length, 100);
  const edns: dns.OptAnswer = {
    type: 'OPT',
    name: '.',
    udpPayloadSize: 4096,
    extendedRcode: 0,
    ednsVersion: 0,
    flags: 0,
    flag_do: false,
    options: [],
  };
  const answer = dns.decode(bytes('udp', { additionals: [edns] }));
  t.match(answer, { flag_tc: true, additionals: [{ type: 'OPT', udpPayloadSize: 1232 }] });
  t.end();
});
