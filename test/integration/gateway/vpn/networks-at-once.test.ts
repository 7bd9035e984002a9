/** Two networks of one endpoint and port at the same moment, in different partitions: not both. */
import { randomBytes } from 'node:crypto';
import t from 'tap';
import type { NetworkView } from '../../../../schemas/api/network.ts';
import { partitionOf } from '../../../../schemas/wire/subjects.ts';
import { runGateway, startGround, startOwnerOn } from '../support.ts';

const rounds = 2;
const networks = '/api/v2/operator/networks';

t.test('of two networks of one endpoint and port that are written at the same moment, one stays at most', async (t) => {
  const ground = await startGround(t);
  await startOwnerOn(t, ground);
  const env = { VAULT_KEYS: `k1:${randomBytes(32).toString('base64')}` };
  const gateways = await Promise.all([runGateway(t, ground, { env }), runGateway(t, ground, { env })]);
  const token = await ground.issuer.mint({ scope: 'operator' });
  const send = async (at: number, method: string, path: string, body?: object) => {
    const headers = { authorization: `Bearer ${token}`, 'content-type': 'application/json' };
    const sent = body === undefined ? { headers } : { headers, body: JSON.stringify(body) };
    const answer = await fetch(`${gateways[at % 2]!.url}${path}`, { method, ...sent });
    return { status: answer.status, body: (await answer.json()) as { readonly data?: readonly NetworkView[] } };
  };
  let pools = 0;
  const settings = (endpoint: string, wireguard_port: number) => ({
    endpoint,
    wireguard_port,
    ipv4_pool: `10.${pools++}.0.0/24`,
  });
  const there = async (endpoint: string): Promise<string[]> => {
    const { body } = await send(0, 'GET', `${networks}?limit=100`);
    return (body.data ?? [])
      .filter((one) => one.endpoint === endpoint)
      .map((one) => `${one.name} ${one.wireguard_port}`);
  };
  for (let round = 0; round < rounds; round++) {
    const names = ['a', 'b'].map((name) => `${name}-${round}`);
    t.not(...(names.map((name) => partitionOf(name, ground.partitions)) as [number, number]));
    const endpoint = `vpn-${round}.example.com`;
    const made = await Promise.all(
      names.map((name, at) => send(at, 'POST', networks, { name, ...settings(endpoint, 51_820) })),
    );
    const kept = names.filter((_, at) => made[at]?.status === 201).map((name) => `${name} 51820`);
    t.ok(kept.length < 2, made.map(({ status }) => status).join());
    t.same(await there(endpoint), kept, 'what was refused is not there');

    const [one, other] = names.map((name) => ({ name: `${name}x`, ...settings(`other-${endpoint}`, 0) }));
    if (one === undefined || other === undefined) throw new Error('no names');
    const own = [
      { ...one, wireguard_port: 1000 },
      { ...other, wireguard_port: 2000 },
    ];
    for (const network of own) t.equal((await send(0, 'POST', networks, network)).status, 201);
    const put = await Promise.all(
      own.map(({ name, ...network }, at) =>
        send(at, 'PUT', `${networks}/${name}`, { ...network, wireguard_port: 3000 }),
      ),
    );
    t.ok(put.filter(({ status }) => status === 200).length < 2, put.map(({ status }) => status).join());
    t.same(
      await there(`other-${endpoint}`),
      own.map(({ name, wireguard_port }, at) => `${name} ${put[at]?.status === 200 ? 3000 : wireguard_port}`),
    );
  }
});
