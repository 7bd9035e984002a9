/** CONTAINER_EGRESS_ALLOW and CONTAINER_EGRESS_DENY, as an operator writes them. */
import t from 'tap';
import { parseEgressRule } from '../../../host-agent/network/egress.ts';
import { checkSettings, settings } from '../../../host-agent/settings.ts';
import { readSettings } from '../../../lib/config.ts';

t.test('a rule names addresses, and perhaps ports and a protocol', (t) => {
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

t.test('all faults of the settings are reported at once, each with its name', (t) => {
  const env = {
    CONTAINER_EGRESS_ALLOW: '10.1.2.3/24, 10.0.0.1:53/udp, x',
    CONTAINER_EGRESS_DENY: 'y',
  };
  const check = () => checkSettings(readSettings(settings, env));
  t.throws(check, /CONTAINER_EGRESS_ALLOW: .*write 10.*CONTAINER_EGRESS_ALLOW: "x".*CONTAINER_EGRESS_DENY: "y"/);
  t.equal(readSettings(settings, {}).CONTAINER_FIREWALL, 'on', 'rules are set unless an operator says otherwise');
  t.end();
});
