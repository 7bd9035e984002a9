/**
 * One valid request for each write of the route table, about things that are made for it. The
 * compiler asks for a new route's, so each rule for writes is tested on all of them.
 */
import type { Container } from '../../../../schemas/api/container.ts';
import type { NetworkView } from '../../../../schemas/api/network.ts';
import type { PeerView } from '../../../../schemas/api/peer.ts';
import { isConditional, routes, type Route, type RouteName } from '../../../../schemas/routes.ts';
import type { Client, Reply } from '../../support/client.ts';
import type { Stack } from '../../support/stack.ts';

type Row = (typeof routes)[number];
/** A run needs a container that runs on a host (test/e2e/containers/sessions.test.ts). */
type WriteRoute = Exclude<Extract<Row, { access: 'tenant' | 'operator' }>, { method: 'GET' } | { forgets: true }>;
export type WriteName = WriteRoute['name'];

export interface WriteRequest {
  readonly path: string;
  readonly body?: object;
  /** ETag of the resource; `undefined` if it has none, or the request makes it. */
  readonly etag?: string;
}

export interface World {
  /** The tenant of `acme`. */
  readonly tenant: string;
  readonly acme: Client;
  readonly operator: Client;
  /** A new request of the route, with what it needs. */
  request(name: WriteName): Promise<WriteRequest>;
  send(name: WriteName, request: WriteRequest, headers?: Record<string, string>): Promise<Reply>;
  /** The path of a GET, with parameters that name what is there. */
  pathOf(route: Route): Promise<string>;
}

export const writes = routes.filter((route) => isConditional(route) && !('forgets' in route)) as readonly WriteRoute[];

const compute = '/api/v2/compute';
const forage = '/api/forage';
const operatorArea = '/api/v2/operator';
const network = { endpoint: 'vpn.example.com', tenants: null };

/** Keys of networks and peers wait for one another on a busy machine (503). */
async function patiently<T>(call: () => Promise<Reply<T>>): Promise<Reply<T>> {
  for (let attempt = 1; ; attempt++) {
    const reply = await call();
    if (reply.status !== 503 || attempt === 5) return reply;
  }
}

/**
 * Number of networks of all worlds in this process. They share a stack, so each network has its own
 * pool and port.
 */
let networks = 0;

export async function worldOf(rig: Stack): Promise<World> {
  const tenant = rig.tenant('writes');
  const acme = await rig.client(tenant);
  const operator = await rig.client('ops', 'operator');
  let count = 0;
  const fresh = (what: string): string => `${what}-${tenant}-${++count}`.toLowerCase();

  const make = async <T>(client: Client, method: string, path: string, body: object) => {
    const reply = await patiently(() => client.call<{ data: T }>(method, path, body));
    if (reply.status >= 300) throw new Error(`${method} ${path}: ${reply.status} ${reply.text}`);
    const etag = reply.headers.get('etag');
    return { data: reply.body.data, ...(etag === null ? {} : { etag }) };
  };
  const etagIn = ({ etag }: { readonly etag?: string }) => (etag === undefined ? {} : { etag });

  const container = async (to: string, body?: object): Promise<WriteRequest> => {
    const declared = { name: fresh('c'), repository: 'none', cpu_limit: '0.001', mem_limit: '6m' };
    const made = await make<Container>(acme, 'POST', `${compute}?start=false`, declared);
    return { path: `${compute}/${made.data.id}${to}`, ...(body === undefined ? {} : { body }), ...etagIn(made) };
  };
  const documents = '/api/v2/containers';
  const ofDocument = ({ path }: WriteRequest): string => path.replace(compute, documents);
  const documentOf = async (made: WriteRequest): Promise<object> =>
    (await acme.call<{ data: object }>('GET', ofDocument(made))).body.data;
  const secret = async (): Promise<WriteRequest> => {
    const path = `${compute}/secrets/${fresh('s')}`;
    return { path, ...etagIn(await make(acme, 'PUT', path, { value: 'one' })) };
  };
  const login = async (): Promise<WriteRequest> => {
    const path = `${compute}/registries/${fresh('r')}.example.com`;
    return { path, ...etagIn(await make(acme, 'PUT', path, { username: 'u', password: 'one' })) };
  };
  const host = async (to: string, body?: object): Promise<WriteRequest> => {
    const made = await make<{ host: { key: string } }>(operator, 'POST', `${operatorArea}/hosts`, newHost());
    const path = `${operatorArea}/hosts/${made.data.host.key}${to}`;
    return { path, ...(body === undefined ? {} : { body }), ...etagIn(made) };
  };
  const newHost = () => ({ key: fresh('h'), region: 'elsewhere' });
  const newNetwork = () => {
    const name = `n${++networks}`;
    const ipv4_pool = `10.${100 + (networks >> 8)}.${networks & 255}.0/24`;
    return { name, ...network, ipv4_pool, wireguard_port: 51_820 + networks };
  };
  const networkOf = (): ReturnType<typeof make<NetworkView>> =>
    make<NetworkView>(operator, 'POST', `${operatorArea}/networks`, newNetwork());
  const shared = (await networkOf()).data;
  const newPeer = () => ({ name: fresh('p'), network: shared.name });
  const peer = async (to: (id: string, data: PeerView) => string, body?: object): Promise<WriteRequest> => {
    const made = await make<PeerView>(acme, 'POST', `${forage}/peers`, newPeer());
    const path = `${forage}/${to(made.data.id, made.data)}`;
    return { path, ...(body === undefined ? {} : { body }), ...etagIn(made) };
  };
  const newKey = () => ({ name: fresh('k'), scopes: ['read'] });
  const ofTenant = `${operatorArea}/tenants/${tenant}`;
  await make(operator, 'PUT', ofTenant, { caps: { containers: 1000, vpn_peers: 200 } });

  const makers: Readonly<Record<WriteName, () => Promise<WriteRequest>>> = {
    'container.create': async () => ({ path: `${compute}?start=false`, body: { name: fresh('c') } }),
    'container.update': () => container('', { env: { A: 'b' } }),
    'container.delete': () => container(''),
    'spec.create': async () => ({ path: documents, body: { name: fresh('c'), desired: 'stopped' } }),
    'spec.put': async () => {
      const made = await container('/spec');
      return { ...made, path: ofDocument(made), body: { ...(await documentOf(made)), env: { A: 'b' } } };
    },
    'spec.patch': async () => {
      const made = await container('/spec');
      return { ...made, path: ofDocument(made), body: { env: { A: 'b' } } };
    },
    'container.rollback': () => container('/rollback', { version: 1 }),
    'container.start': () => container('/start'),
    'container.stop': () => container('/stop'),
    'labels.put': () => container('/labels', { a: 'b' }),
    'labels.patch': () => container('/labels', { a: 'b' }),
    'project.put': () => container('/project', { project: 'shop' }),
    'policy.put': () => container('/policy', { restart: 'never' }),
    'container.secrets.put': () => container('/secrets', { env: {} }),
    'container.operate': async () => {
      const made = await container('', { pull_policy: 'never' });
      return { ...made, path: made.path.replace(compute, `${ofTenant}/containers`) };
    },
    'registry.put': async () => ({ ...(await login()), body: { username: 'u', password: 'two' } }),
    'registry.remove': login,
    'secret.put': async () => ({ ...(await secret()), body: { value: 'two' } }),
    'secret.remove': secret,
    'tenant.put': async () => {
      const etag = (await operator.call('GET', ofTenant)).headers.get('etag');
      const body = { caps: { containers: 1000 + ++count, vpn_peers: 200 } };
      return { path: ofTenant, body, ...(etag === null ? {} : { etag }) };
    },
    'tenant.revoke': async () => ({ path: `${ofTenant}/revocations`, body: { jti: fresh('jti') } }),
    'host.create': async () => ({ path: `${operatorArea}/hosts`, body: newHost() }),
    'host.update': () => host('', { cordoned: true }),
    'host.join_token': () => host('/join-token'),
    'host.remove': () => host(''),
    'key.create': async () => ({ path: '/api/v2/keys', body: newKey() }),
    'key.remove': async () => {
      const made = await make<{ id: string }>(acme, 'POST', '/api/v2/keys', newKey());
      return { path: `/api/v2/keys/${made.data.id}`, ...etagIn(made) };
    },
    'peer.create': async () => ({ path: `${forage}/peers`, body: newPeer() }),
    'peer.update': () => peer((id) => `peers/${id}`, { enabled: false }),
    'peer.remove': () => peer((id) => `peers/${id}`),
    'peer.rotate': () => peer((id) => `peers/${id}/rotate`),
    'peer.password': () => peer((id) => `p12/${id}/password`),
    'peer.token.create': () => peer((id) => `peers/${id}/tokens`, { scope: 'download' }),
    'peer.link.create': () => peer((id) => `peers/${id}/links`, {}),
    'peer.link.remove': async () => {
      const made = await peer((id) => `peers/${id}/links`);
      const { data } = await make<{ id: string }>(acme, 'POST', made.path, {});
      return { ...made, path: `${made.path}/${data.id}` };
    },
    'peer.token.remove': () => peer((id, { tokens }) => `peers/${id}/tokens/${tokens[0]?.id}`),
    'network.create': async () => ({ path: `${operatorArea}/networks`, body: newNetwork() }),
    'network.put': async () => {
      const path = `${operatorArea}/networks/${shared.name}`;
      const etag = (await operator.call('GET', path)).headers.get('etag');
      const { ipv4_pool, wireguard_port } = shared;
      const body = { ...network, ipv4_pool, wireguard_port, mtu: 1300 + ++count };
      return { path, body, ...(etag === null ? {} : { etag }) };
    },
    'network.servers.put': async () => {
      const made = await networkOf();
      return {
        path: `${operatorArea}/networks/${made.data.name}/servers`,
        body: { host_keys: [await hostKey()] },
        ...etagIn(made),
      };
    },
    'network.servers.remove': async () => {
      const made = await networkOf();
      return { path: `${operatorArea}/networks/${made.data.name}/servers`, ...etagIn(made) };
    },
    'network.remove': async () => {
      const made = await networkOf();
      return { path: `${operatorArea}/networks/${made.data.name}`, ...etagIn(made) };
    },
    'secret.reseal': async () => ({ path: `${operatorArea}/vpn-keys/reseal` }),
    'signing_key.rotate': async () => ({ path: `${operatorArea}/signing-keys/rotate` }),
  };

  const hostKey = async (): Promise<string> => {
    const made = await make<{ host: { key: string } }>(operator, 'POST', `${operatorArea}/hosts`, newHost());
    return made.data.host.key;
  };
  const inPath = async (): Promise<Readonly<Record<string, string>>> => {
    const { path } = await container('');
    const key = await hostKey();
    const { id } = (await make<PeerView>(acme, 'POST', `${forage}/peers`, newPeer())).data;
    return { id: path.split('/').at(-1) ?? '', peer: id, network: shared.name, tenant, key };
  };
  let names: ReturnType<typeof inPath> | undefined;

  const rows = new Map<RouteName, WriteRoute>(writes.map((route) => [route.name, route]));
  return {
    tenant,
    acme,
    operator,
    request: (name) => makers[name](),
    pathOf: async ({ path }) => {
      const known = await (names ??= inPath());
      return path.replaceAll(/:(\w+)/g, (_, name: string) => known[name] ?? name);
    },
    send: (name, { path, body }, headers = {}) => {
      const { access = 'tenant', method = 'POST' } = rows.get(name) ?? {};
      return patiently(() => (access === 'operator' ? operator : acme).call(method, path, body, headers));
    },
  };
}
