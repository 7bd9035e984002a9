/** The network of a tenant as its API shows it, on real servers. */
import t from 'tap';
import type { Container } from '../../../schemas/api/container.ts';
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
