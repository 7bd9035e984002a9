/** What an operator writes of what containers may reach, and the rules that come of it. */
import t from 'tap';
import { parseEgressRule, parseEgressRules } from '../../../host-agent/network/egress.ts';
import {
  deniedPackets,
  firewallRules,
  firewallTable,
  withoutCounts,
} from '../../../host-agent/network/firewall-rules.ts';
import { nameserversIn, readNameservers } from '../../../host-agent/network/nameservers.ts';
import { checkSettings, settings } from '../../../host-agent/settings.ts';
import { readSettings } from '../../../lib/config.ts';
import type { HostKey } from '../../../schemas/ids.ts';

t.test('an allowance', (t) => {
  const tcp = (from: number, to = from) => ({ protocol: 'tcp', from, to });
  for (const [text, rule] of [
    ['10.1.2.0/24:5432/tcp', { family: 4, cidr: '10.1.2.0/24', service: tcp(5432) }],
    ['10.1.2.3:53/udp', { family: 4, cidr: '10.1.2.3/32', service: { protocol: 'udp', from: 53, to: 53 } }],
    ['192.0.2.7:32768-60999/tcp', { family: 4, cidr: '192.0.2.7/32', service: tcp(32768, 60999) }],
    ['10.9.9.9', { family: 4, cidr: '10.9.9.9/32', service: null }],
    ['10.0.0.0/8', { family: 4, cidr: '10.0.0.0/8', service: null }],
    ['[fd00:1::/64]:443/tcp', { family: 6, cidr: 'fd00:1::/64', service: tcp(443) }],
    ['[FD00::1]', { family: 6, cidr: 'fd00::1/128', service: null }],
  ] as const) {
    t.same(parseEgressRule(text), { ok: true, rule }, text);
  }
  for (const [text, fault] of [
    ['', /no address or network/],
    ['10.1.2.3/24', /write 10\.1\.2\.0\/24/],
    ['10.1.2.3:5432', /is not of the form/],
    ['10.1.2.3/tcp', /no address or network/],
    ['10.1.2.3:0/tcp', /from 1 to 65535/],
    ['10.1.2.3:70000/tcp', /from 1 to 65535/],
    ['10.1.2.3:9-8/tcp', /end is before its begin/],
    ['10.1.2.3:80/sctp', /is not of the form/],
    ['010.1.2.3', /no address or network/],
    ['db.example:5432/tcp', /no address or network/],
    ['fd00::1', /brackets/],
    ['[fd00::1', /is not of the form/],
    ['10.0.0.0/33', /no address or network/],
    ['10.0.0.0/8; drop', /no address or network/],
    ['10.0.0.1\n  accept', /no address or network/],
  ] as const) {
    const parsed = parseEgressRule(text);
    t.match(parsed, { ok: false, fault }, JSON.stringify(text));
  }
  t.end();
});

t.test('faults of the setting are told all at once, each with its name', (t) => {
  const env = {
    CONTAINER_EGRESS_ALLOW: '10.1.2.3/24, 10.0.0.1:53/udp, x',
    CONTAINER_EGRESS_DENY: 'y',
  };
  const check = () => checkSettings(readSettings(settings, env));
  t.throws(check, /CONTAINER_EGRESS_ALLOW: .*write 10.*CONTAINER_EGRESS_ALLOW: "x".*CONTAINER_EGRESS_DENY: "y"/);
  t.equal(readSettings(settings, {}).CONTAINER_FIREWALL, 'on', 'rules are set unless an operator says otherwise');
  t.end();
});

t.test('the table is of one agent', (t) => {
  const owner = { cluster: 'c', host: 'h1' as HostKey };
  t.match(firewallTable(owner), /^longshore_[0-9a-f]{12}$/);
  t.not(firewallTable(owner), firewallTable({ ...owner, host: 'h2' as HostKey }));
  t.not(firewallTable(owner), firewallTable({ ...owner, cluster: 'd' }));
  const plan = { table: 'longshore_a', bridge: 'br-a', deny: [], resolvers: ['10.0.0.53'] };
  const { rules: allow } = parseEgressRules(['10.1.2.0/24:5432/tcp']);
  const rules = firewallRules({ ...plan, allow });
  const named = [...rules.matchAll(/(?:iifname|oifname) "([^"]*)"/g)].map(([, name]) => name);
  t.same(new Set(named), new Set(['br-a']), 'it decides about one bridge');
  t.ok(rules.indexOf('10.1.2.0/24 tcp dport 5432 accept') < rules.indexOf('ip daddr { 0.0.0.0/8'), 'allowances first');
  t.end();
});

t.test('what nft shows', (t) => {
  const listed =
    'table inet x {\n\tcounter denied_host {\n\t\tpackets 12 bytes 720\n\t}\n\n\tcounter denied_network {\n\t\tpackets 3 bytes 9\n\t}\n}\n';
  t.same(deniedPackets(listed), { network: 3, host: 12, container: 0, inbound: 0 });
  t.equal(withoutCounts(listed), withoutCounts(listed.replace('12', '13').replace('720', '780')));
  t.not(withoutCounts(listed), withoutCounts(listed.replace('denied_host', 'x')));
  t.end();
});

t.test('the name servers of the host', async (t) => {
  t.same(
    nameserversIn(
      '# nameserver 1.1.1.1\nnameserver 10.0.0.2\n nameserver\tfd00::2\nnameserver fe80::1%eth0\nsearch x\n',
    ),
    ['10.0.0.2', 'fd00::2'],
  );
  const read = (files: Readonly<Record<string, string>>) => (path: string) =>
    files[path] === undefined ? Promise.reject(new Error('ENOENT')) : Promise.resolve(files[path]);
  const behind = { '/run/systemd/resolve/resolv.conf': 'nameserver 10.0.0.9\n' };
  t.same(await readNameservers(read({ '/etc/resolv.conf': 'nameserver 127.0.0.53\n', ...behind })), ['10.0.0.9']);
  t.same(await readNameservers(read({ '/etc/resolv.conf': 'nameserver 10.0.0.1\n', ...behind })), ['10.0.0.1']);
  t.same(await readNameservers(read({ '/etc/resolv.conf': 'nameserver 127.0.0.1\nnameserver 10.0.0.1\n' })), [
    '10.0.0.1',
  ]);
  t.same(await readNameservers(read({})), []);
});
