/** The network of a tenant as its API shows it, on real servers. */
import t from 'tap';
import type { Container } from '../../../schemas/api/container.ts';
import type { Spec } from '../../../schemas/api/spec.ts';
import type { TenantName, TenantNetwork } from '../../../schemas/api/tenant-network.ts';
import { steady } from '../../host-agent/support/rig.ts';
import { imageRunning } from '../support/images.ts';
import { sharedStack } from '../support/stack.ts';

t.setTimeout(300_000);
const network = '/api/v2/network';
const containers = '/api/v2/containers';

interface Page {
  readonly data: readonly TenantName[];
  readonly next_cursor?: string;
}

t.test('the network of a tenant', async (t) => {
  const rig = await sharedStack(t);
  const [acme, other] = [await rig.client(rig.tenant('network')), await rig.client(rig.tenant('neighbour'))];
  const image = await imageRunning(rig, steady);
  const create = async (body: object): Promise<Container> =>
    (await acme.call<{ data: Container }>('POST', containers, { image, cpu_limit: '0.1', mem_limit: '16m', ...body }))
      .body.data;
  const names = async (query = '', client = acme) => (await client.call<Page>('GET', `${network}/names${query}`)).body;
  const view = async (client = acme) => (await client.call<{ data: TenantNetwork }>('GET', network)).body.data;

  const store = await create({ name: 'store', project: 'shop', aliases: ['db'], desired: 'stopped' });
  const web = await create({ name: 'web', desired: 'stopped' });
  await create({ name: 'a_b', desired: 'stopped' });

  await t.test('its ranges, domain and members', async (t) => {
    const mine = await view();
    t.match(mine, { ipv6: /^fd.*\/48$/, domain: 'internal', members: 3 });
    t.same(await view(other), { ...mine, members: 0 }, 'the ranges are those of the cluster');
  });

  await t.test('a container that is to be in none', async (t) => {
    const refused = await acme.call('POST', containers, { name: 'x', image, network: { mode: 'host', to: 1 } });
    t.match(refused, {
      status: 422,
      body: { details: { 'network.mode': ['must be "tenant" or "none"'], 'network.to': [/no setting: mode/] } },
    });
    const apart = await create({ name: 'apart', network: { mode: 'none' }, desired: 'stopped' });
    const spec = async () => (await acme.call<{ data: Spec }>('GET', `${containers}/${apart.id}/spec`)).body.data;
    t.same((await spec()).network, { mode: 'none' });
    t.equal((await acme.status(apart)).body.data.network, null);
    t.match([(await view()).members, (await names()).data.length], [3, 3]);
    const patched = await acme.call('PATCH', `${containers}/${apart.id}/spec?dry_run=true`, { network: null });
    t.match(patched, { status: 200, body: { plan: { action: 'replace', changed: ['network'] } } });
    t.equal((await acme.call('PATCH', `${containers}/${apart.id}/spec`, { network: { mode: null } })).status, 200);
    t.same((await spec()).network, { mode: 'tenant' });
    t.match((await acme.status(apart)).body.data.network, { names: ['apart', 'apart.internal'] });
    t.equal((await view()).members, 4);
    t.equal(
      (await acme.call('PUT', `${containers}/${apart.id}/spec`, { ...(await spec()), network: { mode: 'none' } }))
        .status,
      200,
    );
    t.equal((await view()).members, 3);
  });

  await t.test('its names, in pages', async (t) => {
    const all = await names();
    t.same(
      all.data.map(({ name, kind, project, container_id: id }) => [name, kind, project, id]),
      [
        ['db', 'alias', 'shop', store.id],
        ['store', 'name', 'shop', store.id],
        ['web', 'name', null, web.id],
      ],
    );
    const { network: shown } = (await acme.status(web)).body.data;
    t.match(all.data[2], { ipv4: shown?.ipv4, ipv6: shown?.ipv6 });
    const first = await names('?limit=2');
    t.same(first.data, all.data.slice(0, 2));
    t.same(await names(`?cursor=${first.next_cursor}`), { data: all.data.slice(2) });
    t.match(await acme.call('GET', `${network}/names?cursor=web`), {
      status: 422,
      body: { details: { cursor: [/./] } },
    });
    t.same(await names('', other), { data: [] });
  });
});
