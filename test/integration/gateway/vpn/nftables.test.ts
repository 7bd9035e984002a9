/** `nft` accepts the rules of a VPN server. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { run } from '../../../../dev/process/run.ts';
import { toolHere } from '../../../../dev/fetch/tools.ts';
import { serverNftables, type FilteredPeer } from '../../../../gateway/vpn/render/wireguard/nftables.ts';
import type { TenantId } from '../../../../schemas/ids.ts';
import { temporaryFolder } from '../../../support/folder.ts';
import { skipWithoutTools } from '../../../support/tools.ts';
import { networkWith } from '../../../gateway/vpn/support.ts';
const peer = (tenant: string, index: number): FilteredPeer => ({
  tenant: tenant as TenantId,
  ipv4: `10.86.0.${index}`,
  ipv6: `fd00:86::${index.toString(16)}`,
});
const [a1, b1] = [peer('acme', 2), peer('bolt', 3)];
t.test('nft accepts the rules, also those of a full pool', { skip: await skipWithoutTools('nft') }, async (t) => {
  const { path, env } = await toolHere('nft');
  const folder = temporaryFolder(t);
  const full = Array.from({ length: 4000 }, (_, index): FilteredPeer => ({
    tenant: `tenant-${index % 700}` as TenantId,
    ipv4: `10.${100 + (index >> 16)}.${(index >> 8) & 255}.${index & 255}`,
    ipv6: null,
  }));
  for (const [of, text] of [
    ['no peers', serverNftables(networkWith(), [])],
    ['IPv4 alone', serverNftables(networkWith({ ipv6_pool: null }), [a1, b1])],
    [
      'both families',
      serverNftables(networkWith({ routes: ['0.0.0.0/0', '::/0', 'fd00::/8', '10.0.0.0/8'] }), [a1, b1]),
    ],
    ['a name with a hyphen', serverNftables(networkWith({}, '0-my-net'), [a1])],
    ['the name of an interface', serverNftables(networkWith({}, 'eth0'), [a1])],
    ['thousands', serverNftables(networkWith({ ipv4_pool: '10.100.0.0/16', ipv6_pool: null }), full)],
  ] as const) {
    const file = join(folder, 'nftables.conf');
    writeFileSync(file, text);
    // Applied twice: the second run replaces the rules of the first.
    const command = ['--net', '--', 'sh', '-c', '"$0" -f "$1" && "$0" -f "$1" && "$0" -t list ruleset', path, file];
    const ran = await run('unshare', command, { env, deadlineMs: 60_000 });
    t.equal(ran.code, 0, `${of}: ${ran.stderr}`);
    t.equal(ran.stdout.split('chain forward').length, 2, of);
  }
});
