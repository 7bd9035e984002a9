import t from 'tap';
import { probesOf } from '../../../gateway/compute/probes.ts';
import type { Call } from '../../../gateway/http/call.ts';
import type { RouteName } from '../../../schemas/routes.ts';
import { peerId } from '../vpn/support.ts';
import { callOf, servicesWith } from '../calls.ts';
import type { PeerId, TenantId } from '../../../schemas/ids.ts';

t.test('each probe asks its owner for what the path names', async (t) => {
  const params = { id: 'c', tenant: 'other', peer: peerId, network: 'office', key: 'h1' };
  const rows: [RouteName, string, string | undefined][] = [
    ['container.logs', 'container.trace', 'acme'],
    ['container.wait', 'container.get', 'acme'],
    ['container.operate', 'container.get', 'other'],
    ['peer.update', 'peer.get', 'acme'],
    ['network.put', 'network.get', undefined],
    ['host.update', 'host.get', undefined],
  ];
  for (const [route, type, tenant] of rows) {
    const services = servicesWith();
    await probesOf(services)[route]?.(callOf({ route, params }));
    t.match(services.asked, [{ lane: 'read', question: { type, ...(tenant === undefined ? {} : { tenant }) } }], route);
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
  const call = callOf({ params: { peer: peerId }, identity: undefined, grant });
  t.match(await probesOf(services)['artifact.p12']?.(call), { code: 'not_found' });
  t.same(services.asked, []);
});
