import t from 'tap';
import { probesOf } from '../../../gateway/pipeline/probes.ts';
import type { Call, Handlers } from '../../../gateway/call.ts';
import { peerId } from '../vpn/support.ts';
import { callOf, servicesWith } from '../calls.ts';
import type { ContainerId, HostKey, NetworkName, PeerId, TenantId } from '../../../schemas/ids.ts';

const containerId = '018f0000-0000-7000-8000-000000000001' as ContainerId;
const other = 'other' as TenantId;
const network = 'office' as NetworkName;
const host = 'h1' as HostKey;

t.test('each probe asks its owner for what the path names', async (t) => {
  const params = { id: containerId };
  const rows: [(probes: Partial<Handlers>) => unknown, string, string | undefined][] = [
    [(probes) => probes['container.logs']?.(callOf('container.logs', { params })), 'container.trace', 'acme'],
    [(probes) => probes['container.wait']?.(callOf('container.wait', { params })), 'container.get', 'acme'],
    [
      (probes) => probes['container.operate']?.(callOf('container.operate', { params: { ...params, tenant: other } })),
      'container.get',
      other,
    ],
    [(probes) => probes['peer.update']?.(callOf('peer.update', { params: { peer: peerId } })), 'peer.get', 'acme'],
    [(probes) => probes['network.put']?.(callOf('network.put', { params: { network } })), 'network.get', undefined],
    [(probes) => probes['host.update']?.(callOf('host.update', { params: { key: host } })), 'host.get', undefined],
  ];
  for (const [ask, type, tenant] of rows) {
    const services = servicesWith();
    await ask(probesOf(services));
    t.match(services.asked, [{ lane: 'read', question: { type, ...(tenant === undefined ? {} : { tenant }) } }], type);
  }
});

t.test('a token of one peer does not show that another peer exists', async (t) => {
  const services = servicesWith();
  const grant: Call['grant'] = {
    tenant: 'acme' as TenantId,
    peer: 'other' as PeerId,
    scope: 'download',
    tokenHash: 'h',
  };
  const call = callOf('artifact.p12', { params: { peer: peerId }, identity: undefined, grant });
  t.match(await probesOf(services)['artifact.p12']?.(call), { code: 'not_found' });
  t.same(services.asked, []);
});
