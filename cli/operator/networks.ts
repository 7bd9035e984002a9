/** `network`: that of a tenant's containers; and VPN networks, for operators. */
import type { Command } from 'commander';
import { dataOf, doneOf, orNone, type Schemas } from '../client/api.ts';
import { allOf } from '../client/pages.ts';
import type { Values } from '../../lib/values.ts';
import { action, type Context, type Terminal } from '../context.ts';
import { carryOut, settable, settingsWith, type SetOptions } from '../settings/set.ts';
import { addTenantNetwork } from '../tenant/network.ts';
import { listing, showing, showList } from '../terminal/list.ts';

const path = (network: string) => ({ params: { path: { network } } });

async function list(context: Context): Promise<void> {
  showList(context, {
    items: await allOf((query) => context.api.GET('/api/v2/operator/networks', { params: { query } })),
    columns: {
      network: ({ name }) => name,
      endpoint: ({ endpoint }) => endpoint,
      addresses: ({ ipv4_pool }) => ipv4_pool,
      'in use': ({ addresses }) => `${addresses.allocated} of ${addresses.total}`,
      host: ({ servers }) => servers.join(','),
      tenants: ({ tenants }) => (tenants === null ? 'all' : tenants.join(',') || 'none'),
    },
    nameOf: ({ name }) => name,
    empty: 'There are no networks.',
  });
}

async function get({ api, show }: Context, name: string): Promise<void> {
  const value = await dataOf(api.GET('/api/v2/operator/networks/{network}', path(name)));
  show(value, JSON.stringify(value, null, 2));
}

/** The settings in an answer. */
const settingsOf = (view: Schemas['Network'], settings: object): Values =>
  Object.fromEntries(Object.entries(view).filter(([key]) => Object.hasOwn(settings, key)));

async function set(context: Context, name: string, texts: readonly string[], options: SetOptions): Promise<void> {
  // TypeBox comes with it, and only this command needs it.
  const { NetworkBody, NetworkCreateBody } = await import('../../schemas/api/network.ts');
  const { api } = context;
  const view = await orNone(dataOf(api.GET('/api/v2/operator/networks/{network}', path(name))));
  const stored = view === undefined ? {} : settingsOf(view, NetworkBody.properties);
  const schema = view === undefined ? NetworkCreateBody : NetworkBody;
  const settings = await settingsWith(context, schema, stored, texts, options);
  // The server reports missing and wrong fields.
  const body = { name, ...settings } as Schemas['NetworkCreate'];
  const { name: _, ...changed } = body;
  await carryOut(context, name, [stored, settings], options, async () => {
    const made = await (view === undefined
      ? dataOf(api.POST('/api/v2/operator/networks', { body }))
      : dataOf(api.PUT('/api/v2/operator/networks/{network}', { ...path(name), body: changed })));
    if (made.tenants?.length === 0)
      context.tell('no tenant may make peers in it: name them with tenants=acme,beta, or all with tenants=null');
    return made;
  });
}

async function serve(context: Context, name: string, host: string): Promise<void> {
  const served = context.api.PUT('/api/v2/operator/networks/{network}/servers', {
    ...path(name),
    body: { host_keys: [host] },
  });
  context.show(await dataOf(served), `${name} is served by ${host}`);
  context.tell('its peers have to download their files again');
}

async function unserve({ api, show }: Context, name: string): Promise<void> {
  await doneOf(api.DELETE('/api/v2/operator/networks/{network}/servers', path(name)));
  show({ name }, name);
}

async function remove({ api, show }: Context, name: string): Promise<void> {
  await doneOf(api.DELETE('/api/v2/operator/networks/{network}', path(name)));
  show({ name }, name);
}

export function addNetworks(program: Command, terminal: Terminal): void {
  const network = program.command('network').description('Show the network of your containers; manage VPN networks');
  addTenantNetwork(network, terminal);
  listing(network.command('ls').description('List VPN networks (this and the following: operators only)')).action(
    action(terminal, list),
  );
  showing(network.command('get <network>').description('Show the settings and certificates of a VPN network')).action(
    action<[string]>(terminal, get),
  );
  settable(
    network.command('set <network>').description('Create or change a VPN network; other settings stay'),
    'endpoint=vpn.example.com ipv4_pool=10.86.0.0/24 tenants=acme',
  ).action(action<[string, string[], SetOptions]>(terminal, set));
  network
    .command('serve <network> <host>')
    .description('Set the host that leads peers of a VPN network to their tenants’ containers')
    .action(action<[string, string]>(terminal, serve));
  network
    .command('unserve <network>')
    .description('Stop serving a VPN network from a host')
    .action(action<[string]>(terminal, unserve));
  network
    .command('rm <network>')
    .description('Remove a VPN network that has no peers')
    .action(action<[string]>(terminal, remove));
}
