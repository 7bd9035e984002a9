/** Containers for which a host may report usage (invariant A7). */
import t from 'tap';
import { judgeUsage } from '../../../../actors/domain/host/usage.ts';
import { defaultTenant } from '../../../../schemas/api/tenant.ts';
import type { TombstoneRecord } from '../../../../schemas/api/container.ts';
import type { HostKey, NetworkName } from '../../../../schemas/ids.ts';
import type { NetworkServer } from '../../../../schemas/wire/network-server.ts';
import type { StoredAmounts } from '../../../../schemas/records/usage.ts';
import { containerId } from '../../support.ts';
import { acme, container, h1, h2, stateOf } from '../../support/records.ts';
import { home, peerId, peerRecord } from '../../support/vpn.ts';

t.test('of those that were placed on it', (t) => {
  const moved = container({ history: [h1, h2] });
  const gone: TombstoneRecord = {
    kind: 'tombstone',
    id: containerId(),
    tenant: acme,
    history: [h1],
    goneAtMs: 1,
    idempotency: null,
  };
  const fleet = { server: () => undefined };
  const named: TombstoneRecord = { ...gone, id: containerId(), name: 'migrate' };
  const state = stateOf(defaultTenant(acme), moved, gone, named);
  const judge = (host: typeof h1, id: typeof gone.id, used: StoredAmounts = [1, 1, '1']) =>
    judgeUsage(
      { state, fleet },
      host,
      { tenant: acme, id, used },
      { cpu_millis: 2000, mem_bytes: 1024, containers: 1 },
    );
  t.same(judge(h1, moved.id), { kind: 'accepted', name: moved.spec.name }, 'also when it runs elsewhere now');
  t.same(judge(h2, moved.id), { kind: 'accepted', name: moved.spec.name });
  t.same(judge(h1, gone.id), { kind: 'accepted', name: undefined }, 'and when a release before 0.2.0 removed it');
  t.same(judge(h1, named.id), { kind: 'accepted', name: 'migrate' }, 'a job that was removed before its first report');
  t.same(judge(h2, gone.id), { kind: 'refused' });
  t.same(judge(h1, containerId()), { kind: 'refused' }, 'nobody knows it');
  const hourMs = 3_600_000;
  for (const used of [
    [2 * hourMs, 4 * hourMs, String(2 * hourMs * 1024)],
    [2 * hourMs + 1, 0, '0'],
    [0, 4 * hourMs + 1, '0'],
    [0, 0, String(2 * hourMs * 1024 + 1)],
  ] satisfies StoredAmounts[]) {
    const kind = used.every((amount) => Number(amount) > 0) ? 'accepted' : 'refused';
    t.match(judge(h1, moved.id, used), { kind }, `no more than fits in an hour: ${used.join(' ')}`);
  }
  state.quarantine(`container.${acme}.${moved.id}`);
  t.same(judge(h1, moved.id), { kind: 'unreadable' });
  t.end();
});

const servedBy = (host: HostKey): NetworkServer => ({
  ...{ network: home, host, key: 'key', port: 51820, mtu: null, ipv4_pool: '10.86.0.0/24', ipv6_pool: null },
  ...{ tenants: null, certificate: '1a' },
});

t.test('of peers in the VPN networks that it serves', (t) => {
  const peer = peerRecord();
  const state = stateOf(defaultTenant(acme), peer);
  const fleet = { server: (network: NetworkName) => (network === home ? servedBy(h1) : undefined) };
  const judge = (host: typeof h1, id = peer.id) =>
    judgeUsage(
      { state, fleet },
      host,
      { tenant: acme, id, used: [1, 2] },
      { cpu_millis: 1, mem_bytes: 1, containers: 1 },
    );
  t.same(judge(h1), { kind: 'accepted', name: undefined });
  t.same(judge(h2), { kind: 'served before' }, 'the stream may have more of it by this host');
  t.same(judge(h1, peerId()), { kind: 'refused' }, 'nobody knows it');
  state.quarantine(`peer.${acme}.${peer.id}`);
  t.same(judge(h1), { kind: 'unreadable' });
  t.end();
});
