import t from 'tap';
import { fileName } from '../../../../../gateway/vpn/render/filename.ts';
import { Unfit } from '../../../../../gateway/vpn/render/fit.ts';
import {
  clientSwanctl,
  passwordPlaceholder,
  serverSwanctl,
} from '../../../../../gateway/vpn/render/strongswan/swanctl.ts';
import { breaking, flat, label, localId, nasty, networkWith, peerId, proxy, subjectWith } from '../../support.ts';

interface Section {
  [name: string]: string | Section;
}

/**
 * strongswan.conf(5) as its lexer reads it, of what is needed here: names, values that go on to the
 * line's end or a quote, sections, references. A comment, an include or an escape fails: there are
 * none in our files.
 */
function parse(text: string): Section {
  const root: Section = {};
  const open: Section[] = [root];
  const references: [section: Section, to: string][] = [];
  for (const line of text.split('\n').map((part) => part.trim())) {
    const [, name, reference] = /^([A-Za-z0-9_-]+)(?: : ([a-z0-9.-]+))? \{$/.exec(line) ?? [];
    const [, key, quoted, plain] = /^([a-z0-9_]+) = (?:"([^"\\#]*)"|([^#}{"\\\s]+))$/.exec(line) ?? [];
    const here = open.at(-1) ?? root;
    if (line === '') continue;
    else if (line === '}' && open.length > 1) open.pop();
    else if (name !== undefined) {
      if (name in here) throw new Error(`twice: ${name}`);
      const section: Section = {};
      here[name] = section;
      open.push(section);
      if (reference !== undefined) references.push([section, reference]);
    } else if (key !== undefined) {
      if (key in here) throw new Error(`twice: ${key}`);
      here[key] = quoted ?? plain ?? '';
    } else throw new Error(`no grammar for ${JSON.stringify(line)}`);
  }
  if (open.length !== 1) throw new Error('a section is open');
  for (const [section, to] of references) inherit(section, sectionOf(root, to));
  return root;
}

function sectionOf(root: Section, path: string): Section {
  const found = path
    .split('.')
    .reduce<string | Section | undefined>((at, name) => (typeof at === 'object' ? at[name] : undefined), root);
  if (typeof found !== 'object') throw new Error(`no section ${path}`);
  return found;
}

/** Copies what the section does not say from another one, and merges sections within. */
function inherit(section: Section, from: Section): void {
  for (const [name, value] of Object.entries(from)) {
    const own = section[name];
    if (own === undefined) section[name] = typeof value === 'string' ? value : structuredClone(value);
    else if (typeof own === 'object' && typeof value === 'object') inherit(own, value);
  }
}

const ikeTexts = 'aes256gcm16-prfsha384-ecp384, aes256gcm16-prfsha256-ecp256, aes256-sha256-modp2048';
const espTexts = 'aes256gcm16-ecp384, aes256gcm16-ecp256, aes256-sha256-modp2048, aes256gcm16, aes256-sha256';
const otherId = '01920a3b-4c5d-7e6f-8a9b-0c1d2e3f4a5c';
const peers = [
  { localId, ipv4: '10.86.0.2', ipv6: 'fd00:86::2' },
  { localId: `${otherId}.demo.internal`, ipv4: '10.86.0.3', ipv6: null },
];

t.test('both ends have a selector for a resolver that the routes leave out', (t) => {
  const settings = { routes: ['192.168.7.0/24'], dns: ['10.86.0.1', '9.9.9.9'] };
  t.match(serverSwanctl(networkWith(settings), []), 'local_ts = "192.168.7.0/24, 10.86.0.1/32"');
  t.match(clientSwanctl(subjectWith({}, settings)), 'remote_ts = "192.168.7.0/24, 10.86.0.1/32"');
  t.end();
});

t.test('both ends have a selector for a proxy that the routes leave out', (t) => {
  const settings = { routes: ['192.168.7.0/24'], dns: [], proxy };
  t.match(serverSwanctl(networkWith(settings), []), 'local_ts = "192.168.7.0/24, 10.9.9.9/32"');
  t.match(clientSwanctl(subjectWith({}, settings)), 'remote_ts = "192.168.7.0/24, 10.9.9.9/32"');
  t.end();
});

t.test('a client’s file is a connection and where the password goes', (t) => {
  t.same(parse(clientSwanctl(subjectWith())), {
    connections: {
      demo: {
        version: '2',
        remote_addrs: 'vpn.example.com',
        vips: '0.0.0.0, ::',
        proposals: ikeTexts,
        fragmentation: 'yes',
        dpd_delay: '60s',
        local: { auth: 'pubkey', id: localId },
        remote: { auth: 'pubkey', id: 'vpn.example.com' },
        children: {
          home: { remote_ts: '0.0.0.0/0, ::/0', esp_proposals: espTexts, dpd_action: 'restart' },
        },
      },
    },
    secrets: { 'pkcs12-demo': { file: 'phone.p12', secret: passwordPlaceholder } },
  });
  const plain = flat(parse(clientSwanctl(subjectWith({ ipv6: null }))));
  t.equal(plain.get('/connections/demo/vips'), '0.0.0.0');
  t.equal(plain.get('/connections/demo/children/home/remote_ts'), '0.0.0.0/0');
  t.end();
});

t.test('the server’s file lets each peer in under its own name, to its own addresses', (t) => {
  const { connections, pools, ...others } = parse(serverSwanctl(networkWith(), peers)) as Record<string, Section>;
  t.same(Object.keys(others), ['longshore-demo']);
  t.same(
    Object.keys(connections ?? {}),
    [peerId, otherId].flatMap((id) => [`peer-${id}`, `peer-${id}-dn`]),
  );
  const connection = (id: string, pool: string) => ({
    pools: pool,
    version: '2',
    proposals: ikeTexts,
    unique: 'replace',
    send_cert: 'always',
    fragmentation: 'yes',
    mobike: 'yes',
    dpd_delay: '60s',
    rekey_time: '10h',
    local: { auth: 'pubkey', certs: 'demo.pem', id: 'vpn.example.com' },
    remote: { id, auth: 'pubkey', cacerts: 'demo-ca.pem', revocation: 'strict' },
    children: {
      net: { local_ts: '0.0.0.0/0, ::/0', esp_proposals: espTexts, dpd_action: 'clear', rekey_time: '2h' },
    },
  });
  const both = `peer-${peerId}-ipv4, peer-${peerId}-ipv6`;
  t.same(connections?.[`peer-${peerId}`], connection(localId, both));
  t.same(connections?.[`peer-${peerId}-dn`], connection(`CN=${localId}`, both), 'Windows');
  t.same(connections?.[`peer-${otherId}`], connection(`${otherId}.demo.internal`, `peer-${otherId}-ipv4`));
  t.same(pools, {
    [`peer-${peerId}-ipv4`]: { addrs: '10.86.0.2-10.86.0.2', dns: '10.86.0.1, fd00:86::1' },
    [`peer-${peerId}-ipv6`]: { addrs: 'fd00:86::2-fd00:86::2' },
    [`peer-${otherId}-ipv4`]: { addrs: '10.86.0.3-10.86.0.3', dns: '10.86.0.1, fd00:86::1' },
  });
  t.end();
});

t.test('without peers, DNS or IPv6 the file is one still', (t) => {
  const parsed = parse(serverSwanctl(networkWith({ dns: [], ipv6_pool: null }), []));
  t.same([parsed['connections'], parsed['pools']], [{}, {}]);
  t.equal(flat(parsed).get('/longshore-demo/children/net/local_ts'), '0.0.0.0/0');
  const [pool] = Object.values(parse(serverSwanctl(networkWith({ dns: [] }), peers))['pools'] ?? {});
  t.same(pool, { addrs: '10.86.0.2-10.86.0.2' });
  t.end();
});

t.test('of a name there is a file’s name and no more', (t) => {
  const plain = flat(parse(clientSwanctl(subjectWith())));
  for (const name of nasty) {
    const found = flat(parse(clientSwanctl(subjectWith({ name }))));
    const expected = new Map(plain).set('/secrets/pkcs12-demo/file', fileName(name, peerId, 'p12'));
    t.same(found, expected, label(name));
  }
  t.end();
});

t.test('a text that is no address, network, host or id is refused', (t) => {
  for (const text of breaking) {
    const [peer] = peers;
    const at = (change: Partial<(typeof peers)[number]>) => [{ ...peer!, ...change }];
    t.throws(() => clientSwanctl(subjectWith({}, { endpoint: `a.b${text}` })), Unfit, label(text));
    t.throws(() => clientSwanctl(subjectWith({ localId: `${localId}${text}` })), Unfit);
    t.throws(() => clientSwanctl(subjectWith({ routes: [`10.0.0.0/8${text}`] })), Unfit);
    t.throws(() => clientSwanctl({ ...subjectWith(), network: networkWith({}, `demo${text}`) }), Unfit);
    t.throws(() => serverSwanctl(networkWith({ endpoint: text }), peers), Unfit);
    t.throws(() => serverSwanctl(networkWith({ dns: [text] }), peers), Unfit);
    t.throws(() => serverSwanctl(networkWith({ routes: [text] }), peers), Unfit);
    t.throws(() => serverSwanctl(networkWith(), at({ localId: `${localId}${text}` })), Unfit);
    t.throws(() => serverSwanctl(networkWith(), at({ localId: `${text}${peerId}` })), Unfit);
    t.throws(() => serverSwanctl(networkWith(), at({ ipv4: `10.86.0.2${text}` })), Unfit);
    t.throws(() => serverSwanctl(networkWith(), at({ ipv6: text })), Unfit);
  }
  t.throws(() => serverSwanctl(networkWith(), [{ localId: 'demo.internal', ipv4: '10.0.0.2', ipv6: null }]), Unfit);
  t.end();
});
