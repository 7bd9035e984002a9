/** `network show` and `network names`: the network of the tenant's containers. */
import type { Command } from 'commander';
import { dataOf } from '../client/api.ts';
import { allOf } from '../client/pages.ts';
import { action, type Context, type Terminal } from '../context.ts';
import { listing, showing, showList } from '../terminal/list.ts';
import { tableOf } from '../terminal/table.ts';

async function network({ api, show }: Context): Promise<void> {
  const value = await dataOf(api.GET('/api/v2/network'));
  const { ipv4, ipv6, domain, members } = value;
  const rows = Object.entries({ ipv4: ipv4 ?? 'none', ipv6, domain, members: String(members) });
  show(value, tableOf(['', ''], rows, ''));
}

async function names(context: Context): Promise<void> {
  showList(context, {
    items: await allOf((query) => context.api.GET('/api/v2/network/names', { params: { query } })),
    columns: {
      name: ({ name }) => name,
      kind: ({ kind }) => kind,
      project: ({ project }) => project ?? '',
      ipv4: ({ ipv4 }) => ipv4 ?? '',
      ipv6: ({ ipv6 }) => ipv6,
      container: ({ container_id }) => container_id,
    },
    wide: ['container'],
    nameOf: ({ name }) => name,
    idOf: ({ container_id }) => container_id,
    empty: 'There are no names.',
  });
}

/** @param group the command `network`, which has those of operators, too */
export function addTenantNetwork(group: Command, terminal: Terminal): void {
  showing(
    group.command('show', { isDefault: true }).description('Show the network of your containers (also: network)'),
  ).action(action(terminal, network));
  listing(group.command('names').description('List the names by which your containers reach each other')).action(
    action(terminal, names),
  );
}
