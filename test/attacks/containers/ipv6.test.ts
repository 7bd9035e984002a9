/**
 * A tenant's container tries over IPv6 what the firewall keeps it from over IPv4: its host and its
 * neighbour by their link-local addresses, groups of the link, IPv4 addresses inside IPv6 ones, and
 * every private range of IPv6.
 */
import t from 'tap';
import { firewallRules } from '../../../host-agent/network/firewall-rules.ts';
import { eventually } from '../../e2e/support/eventually.ts';
import type { Machine } from '../../support/machine.ts';
import { inCi, skipWithoutTools } from '../../support/tools.ts';
import { layOut, nft, outside, patienceMs, reached, shortMs, tcp80 } from './machines.ts';

t.setTimeout(180_000);

/** An address in each forbidden range, which the network has. */
const forbidden = {
  'unique local': 'fc00:1::5',
  'the metadata service of AWS': 'fd00:ec2::254',
  'a metadata service of Google': 'fd20:ce::254',
  'site-local, deprecated': 'fec0::5',
  'NAT64 of 10.1.2.3': '64:ff9b::a01:203',
  'NAT64 for local use, of 10.1.2.3': '64:ff9b:1::a01:203',
  '6to4 of 10.1.2.3': '2002:a01:203::1',
  'IPv4-compatible, deprecated, of 10.1.2.3': '::a01:203',
  'Teredo by 10.1.2.3': '2001:0:a01:203::1',
  documentation: '2001:db8::5',
  'discard only': '100::5',
} as const;
const publicAddress = '2606:4700::1111';

const skip =
  !inCi && (process.platform !== 'linux' || process.getuid?.() !== 0)
    ? 'network namespaces need Linux and root'
    : await skipWithoutTools('ip', 'nft');

/** The link-local address of an interface. */
async function linkLocalOf(machine: Machine, device: string): Promise<string> {
  const { stdout } = await machine.must('ip', ['-6', '-o', 'address', 'show', 'dev', device, 'scope', 'link']);
  const [, address] = /inet6 (fe80:[^/]+)/.exec(stdout) ?? [];
  if (address === undefined) throw new Error(`${device} has no link-local address: ${stdout}`);
  return address;
}

t.test('a container and IPv6', { skip }, async (t) => {
  const { host, container, neighbour } = await layOut(
    t,
    Object.values(forbidden).filter((address) => !(outside.ipv6 as readonly string[]).includes(address)),
  );
  const links = await eventually(
    'link-local addresses',
    async () => [await linkLocalOf(host, 'br-t'), await linkLocalOf(neighbour, 'eth0')],
    () => true,
  );
  const targets = [
    ...tcp80([...new Set(Object.values(forbidden))]),
    ...tcp80(links.map((address) => `${address}%eth0`)),
    ...tcp80(['fd77::1', '2606:4700:9::1', 'fd77::3', '::ffff:10.1.2.3', '::ffff:169.254.169.254']),
  ];
  // Their absence would mean that the test shows nothing; of the others, some kernels route none.
  const needed = tcp80([...links.map((address) => `${address}%eth0`), 'fd00:ec2::254', '2002:a01:203::1']);
  const silent = new Set<string>();
  await eventually(
    'without rules what the kernel routes answers',
    () => reached(container, [...targets, ...tcp80([publicAddress])], shortMs),
    (answers) => {
      silent.clear();
      for (const [target, isHeard] of Object.entries(answers)) if (!isHeard) silent.add(target);
      return silent.size <= 3 && needed.every((target) => !silent.has(target));
    },
  );
  t.comment(`no kernel routes ${[...silent].join(', ')}`);

  await nft(
    host,
    firewallRules({ table: 'longshore_t', bridge: 'br-t', subnets: [], allow: [], deny: [], resolvers: [] }),
  );
  const after = await reached(container, targets, shortMs);
  t.same(
    targets.filter((target) => after[target] === true),
    [],
    'with the rules nothing private answers',
  );
  const open = tcp80([publicAddress]);
  t.same(await reached(container, open, patienceMs), { [open[0] ?? '']: true }, 'and the public address does');
});
