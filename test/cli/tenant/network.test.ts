import t from 'tap';
import { commands, ok } from '../support.ts';

const route = 'GET /api/v2/network';
const view = { ipv4: null, ipv6: 'fd5e:1:2::/48', domain: 'internal', members: 2 };
const id = '0190b8a0-0000-7000-8000-000000000001';
const name = { name: 'store', container_id: id, kind: 'name', project: null, ipv4: null, ipv6: 'fd5e:1:2:1::1' };

t.test('the network of the tenant: network, and network show', async (t) => {
  const { longshore } = await commands(t, { [route]: ok(view) });
  for (const line of [['network'], ['network', 'show']]) {
    const { code, out } = await longshore(...line);
    t.equal(code, 0);
    t.match(out, /^ipv4 +none\nipv6 +fd5e:1:2::\/48\ndomain +internal\nmembers +2\n$/m);
  }
  t.same(JSON.parse((await longshore('network', '--json')).out), view);
});

t.test('its names, over all pages', async (t) => {
  const alias = { ...name, name: 'db', kind: 'alias', project: 'shop', ipv4: '10.193.0.9' };
  const first = { status: 200, body: { data: [alias], next_cursor: 'c' } };
  const { longshore, asked } = await commands(t, { [`${route}/names`]: [first, ok([name])] });
  const { code, out } = await longshore('network', 'names');
  t.equal(code, 0);
  t.match(out, /db +alias +shop +10\.193\.0\.9 +fd5e:1:2:1::1\n.*store +name +fd5e/s);
  t.match(asked[1]?.path, /cursor=c/);
  t.equal((await longshore('network', 'names', '-o', 'name')).out, 'store\n');
  t.match((await longshore('network', 'names', '-o', 'wide')).out, id);
});

t.test('without names', async (t) => {
  const { longshore } = await commands(t, { [`${route}/names`]: ok([]) });
  t.match(await longshore('network', 'names'), { code: 0, out: 'There are no names.\n' });
});
