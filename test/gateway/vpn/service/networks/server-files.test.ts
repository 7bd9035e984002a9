import t from 'tap';
import { placeOf } from '../../../../../gateway/vpn/service/peers/owner.ts';
import { wireguardOfServer } from '../../../../../gateway/vpn/service/networks/server-files.ts';
import type { LeaseRecord, NetworkSettings, PeerOnServer } from '../../../../../schemas/api/network.ts';
import type { NetworkName, TenantId } from '../../../../../schemas/ids.ts';
import { forageWith, networkNow, nowMs, vault } from '../../forage.ts';
import { keys, localId, peerId } from '../../support.ts';

const asker = { origin: { rid: 'r' }, deadlineMs: 1000 };
const acme = 'acme' as TenantId;

function leaseOf(index: number, more: Partial<PeerOnServer> = {}, tenant = acme): LeaseRecord {
  const presharedKey = vault.seal(placeOf({ tenant, peer: peerId }, 'preshared'), keys.presharedKey);
  const usual = { generation: 1, enabled: true, expiresAtMs: null, localId, certificates: [] };
  const state = { phase: 'held', ...usual, wireguardPublicKey: keys.publicKey, presharedKey, ...more } as const;
  return { kind: 'lease', network: 'demo' as NetworkName, index, tenant, peer: peerId, state };
}

/** The addresses that the server admits, of leases that come in pages of one. */
async function admitted(leases: readonly LeaseRecord[], settings: Partial<NetworkSettings> = {}): Promise<string[]> {
  const { forage, keyring } = forageWith({
    'network.leases': (question) => {
      const at = 'after' in question ? Number(question.after) : 0;
      const next = at + 1 < leases.length ? at + 1 : null;
      return { code: 'ok', body: JSON.stringify({ data: leases.slice(at, at + 1), next }) };
    },
  });
  const conf = await wireguardOfServer(asker, networkNow(settings), keyring, forage.actors, forage.clock);
  return [...conf.matchAll(/AllowedIPs = (.*)/g)].map(([, addresses = '']) => addresses);
}

t.test('the server admits the active peers of tenants that the network serves, from every page', async (t) => {
  const reserved: LeaseRecord = { ...leaseOf(2), state: { phase: 'reserved', atMs: nowMs } };
  const leases = [
    reserved,
    leaseOf(3, { enabled: false }),
    leaseOf(4, { expiresAtMs: nowMs }),
    leaseOf(5, { expiresAtMs: nowMs + 1 }),
    leaseOf(6, {}, 'other' as TenantId),
  ];
  t.same(await admitted(leases), ['10.86.0.5/32, fd00:86::5/128', '10.86.0.6/32, fd00:86::6/128']);
  t.same(await admitted(leases, { tenants: [acme], ipv6_pool: null }), ['10.86.0.5/32']);
  t.same(await admitted(leases, { tenants: [] }), []);
});

t.test('a preshared key that is sealed for another peer gives no file', async (t) => {
  const foreign = leaseOf(2);
  const swapped = { ...foreign, tenant: 'other' as TenantId };
  await t.rejects(admitted([swapped]), { name: 'SealError' });
});
