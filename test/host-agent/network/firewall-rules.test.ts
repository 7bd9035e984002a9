import t from 'tap';
import { parseEgressRules } from '../../../host-agent/network/egress.ts';
import {
  deniedPackets,
  firewallRules,
  firewallTable,
  withoutCounts,
} from '../../../host-agent/network/firewall-rules.ts';
import type { HostKey } from '../../../schemas/ids.ts';

t.test('each agent has a table of its own, which decides about one bridge', (t) => {
  const owner = { cluster: 'c', host: 'h1' as HostKey };
  t.match(firewallTable(owner), /^longshore_[0-9a-f]{12}$/);
  t.not(firewallTable(owner), firewallTable({ ...owner, host: 'h2' as HostKey }));
  t.not(firewallTable(owner), firewallTable({ ...owner, cluster: 'd' }));
  const plan = { table: 'longshore_a', bridge: 'br-a', subnets: [], deny: [], resolvers: ['10.0.0.53'] };
  const { rules: allow } = parseEgressRules(['10.1.2.0/24:5432/tcp']);
  const rules = firewallRules({ ...plan, allow });
  const named = [...rules.matchAll(/(?:iifname|oifname) "([^"]*)"/g)].map(([, name]) => name);
  t.same(new Set(named), new Set(['br-a']));
  t.ok(rules.indexOf('10.1.2.0/24 tcp dport 5432 accept') < rules.indexOf('ip daddr { 0.0.0.0/8'), 'allowances first');
  t.end();
});

t.test('counters are read from what nft prints, and do not count as a change', (t) => {
  const listed =
    'table inet x {\n\tcounter denied_host {\n\t\tpackets 12 bytes 720\n\t}\n\n\tcounter denied_network {\n\t\tpackets 3 bytes 9\n\t}\n}\n';
  t.same(deniedPackets(listed), { network: 3, host: 12, container: 0, inbound: 0 });
  t.equal(withoutCounts(listed), withoutCounts(listed.replace('12', '13').replace('720', '780')));
  t.not(withoutCounts(listed), withoutCounts(listed.replace('denied_host', 'x')));
  t.end();
});
