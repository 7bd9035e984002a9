/**
 * A tenant's container tries to reach the metadata address, services of its host, private networks
 * and its neighbours on the bridge. The test has a network of four machines and the rules that the
 * agent sets, and checks what they refuse and what must still work.
 */
import t from 'tap';
import { parseEgressRules } from '../../../host-agent/network/egress.ts';
import { deniedPackets, firewallRules } from '../../../host-agent/network/firewall-rules.ts';
import type { Machine } from '../../support/machine.ts';
import { eventually } from '../../e2e/support/eventually.ts';
import { inCi, skipWithoutTools } from '../../support/tools.ts';
import { layOut, nft, outside, patienceMs, reached, shortMs, tcp80 } from './machines.ts';

t.setTimeout(120_000);

const all = [
  ...tcp80([...outside.ipv4, ...outside.ipv6]),
  ...tcp80(['10.77.0.1', '9.9.9.1', 'fd77::1', '2606:4700:9::1', '10.77.0.3', 'fd77::3']),
  ...['tcp 10.1.2.3 5432', 'tcp 10.1.2.4 5432', 'tcp 10.0.0.53 53', 'udp 10.0.0.53 53', 'udp 10.1.2.3 53'],
  ...['tcp 10.77.0.1 9100', 'udp 10.77.0.1 53', 'tcp fd00:1::5 5432', 'tcp 169.254.169.254 53'],
];
const allowed = new Set([
  ...tcp80(['8.8.4.4', '2606:4700::1111']),
  ...['tcp 10.1.2.3 5432', 'tcp 10.0.0.53 53', 'udp 10.0.0.53 53', 'tcp 10.77.0.1 9100', 'tcp fd00:1::5 5432'],
]);

/** Addresses in the tenant network, which the container has, too. */
const foreign = { ipv4: '10.200.0.9', ipv6: 'fd5e:1:2::9' } as const;
const sendFrom = `
const net = require('node:net');
const [to, from] = process.argv.slice(1);
const socket = net.connect({ host: to, port: 80, localAddress: from });
socket.on('error', () => {}).setTimeout(300, () => process.exit());
`;
/** The codes of sixty attempts, one after another. */
const attempts = `
const net = require('node:net');
const attempt = () => new Promise((resolve) => {
  const socket = net.connect({ host: process.argv[1], port: 80 });
  socket.setTimeout(1500, () => { socket.destroy(); resolve('silent'); });
  socket.once('error', ({ code }) => resolve(code)).once('connect', () => { socket.destroy(); resolve('connected'); });
});
(async () => {
  const codes = [];
  for (let round = 0; round < 60; round++) codes.push(await attempt());
  console.log(JSON.stringify([...new Set(codes)]));
})();
`;

const skip =
  !inCi && (process.platform !== 'linux' || process.getuid?.() !== 0)
    ? 'network namespaces need Linux and root'
    : await skipWithoutTools('ip', 'nft');

t.test('a container, its host and the networks around', { skip }, async (t) => {
  const { host, container, neighbour, network } = await layOut(t);
  // IPv6 takes a while to find its neighbours.
  await eventually(
    'without rules everything answers',
    () => reached(container, all, shortMs),
    (answers) => all.every((target) => answers[target] === true),
  );

  const { rules: allow } = parseEgressRules(['10.1.2.3:5432/tcp', '10.77.0.1:9100/tcp', '[fd00:1::/64]:5432/tcp']);
  const { rules: deny } = parseEgressRules(['9.9.8.0/24']);
  for (const address of [`${foreign.ipv4}/32`, `${foreign.ipv6}/128 nodad`])
    await container.must('ip', ['address', 'add', ...address.split(' '), 'dev', 'lo']);
  await nft(
    network,
    `table inet seen {
      chain came {
        type filter hook prerouting priority -300;
        ip saddr ${foreign.ipv4} counter
        ip6 saddr ${foreign.ipv6} counter
      }
    }\n`,
  );
  /** Packets from the foreign addresses that leave the host. */
  const escaped = async (): Promise<number[]> => {
    await container.must(process.execPath, ['-e', sendFrom, '8.8.4.4', foreign.ipv4]);
    await container.must(process.execPath, ['-e', sendFrom, '2606:4700::1111', foreign.ipv6]);
    const { stdout } = await network.must('nft', ['list', 'table', 'inet', 'seen']);
    return [...stdout.matchAll(/packets (\d+)/g)].map(([, packets]) => Number(packets));
  };
  const before = await escaped();
  t.ok(before.length === 2 && before.every((packets) => packets > 0), `without rules they leave it: ${before.join()}`);

  const subnets = ['10.77.0.0/24', 'fd77::/64'];
  const plan = { table: 'longshore_t', bridge: 'br-t', subnets, allow, deny, resolvers: ['10.0.0.53'] };
  await nft(host, firewallRules(plan));
  t.same(await escaped(), before, 'a container sends to the network from no other address');
  for (const address of ['10.1.2.4', 'fd00:ec2::254', '10.77.0.1'])
    t.equal(
      (await container.must(process.execPath, ['-e', attempts, address])).stdout.trim(),
      '["ECONNREFUSED"]',
      address,
    );
  // Adds another agent's table, and then the same rules again.
  await nft(host, firewallRules({ ...plan, table: 'longshore_u', bridge: 'br-u', allow: [] }));
  await nft(host, firewallRules(plan));

  const answering = async (from: Machine, targets: readonly string[], waitMs: number): Promise<string[]> => {
    const answers = await reached(from, targets, waitMs);
    return targets.filter((target) => answers[target] === true);
  };
  t.same(await answering(container, [...allowed], patienceMs), [...allowed], 'public and allowed addresses answer');
  const refused = all.filter((target) => !allowed.has(target));
  t.same(await answering(container, refused, shortMs), [], 'and no others');
  const { stdout } = await host.must('nft', ['list', 'table', 'inet', 'longshore_t']);
  for (const [counter, packets] of Object.entries(deniedPackets(stdout))) {
    if (counter !== 'inbound') t.ok(packets > 0, `refused and counted: ${counter}`);
  }

  const published = ['tcp 9.9.9.1 8080', 'tcp 9.9.9.1 80'];
  t.same(await answering(network, published, patienceMs), published, 'published ports and services of the host answer');
  t.same(
    await answering(network, ['tcp 10.77.0.2 80', 'tcp fd77::2 80'], shortMs),
    [],
    'unpublished ports do not answer',
  );
  const both = ['tcp 10.77.0.2 80', 'tcp 10.77.0.3 80'];
  t.same(await answering(host, both, patienceMs), both, 'the host reaches its containers');
  t.same(await answering(neighbour, ['tcp 10.77.0.2 80', 'tcp 9.9.9.1 8080'], shortMs), [], 'a neighbour reaches none');

  const throughHost = parseEgressRules(['9.9.9.1:8080/tcp', '[2606:4700:9::1]:8080/tcp']).rules;
  await nft(host, firewallRules({ ...plan, allow: throughHost }));
  const opened = ['tcp 9.9.9.1 8080'];
  t.same(
    await answering(neighbour, opened, patienceMs),
    opened,
    'a neighbour reaches a port of the host that is allowed and published',
  );
  const others = ['tcp 10.77.0.2 80', 'tcp 10.77.0.2 8080', 'tcp 9.9.9.1 80', 'tcp 10.77.0.1 80', 'tcp 9.9.9.1 9100'];
  t.same(await answering(neighbour, others, shortMs), [], 'a neighbour reaches no other port');
});
