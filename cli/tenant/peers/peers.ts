/** `peer`: devices in a VPN. */
import { Option, type Command } from 'commander';
import { dataOf, doneOf, type Schemas } from '../../client/api.ts';
import { action, type Context, type Terminal } from '../../context.ts';
import { collect, endText, endTime, pastText, pastTime } from '../../terminal/arguments.ts';
import { listing, shortIds, showing, showList } from '../../terminal/list.ts';
import { bytesText } from '../../terminal/quantities.ts';
import { agoText, tableOf } from '../../terminal/table.ts';
import { each } from '../each.ts';
import { findPeer, peersOf } from '../find.ts';
import { config, formats, qr, type Format } from './files.ts';
import { link, links, unlink, type LinkOptions } from './links.ts';

const amount = (bytes: number | null | undefined): string => (typeof bytes === 'number' ? bytesText(bytes) : '-');

async function list(context: Context): Promise<void> {
  const items = await peersOf(context);
  const short = shortIds(items.map(({ id }) => id));
  showList(context, {
    items,
    columns: {
      name: ({ name }) => name,
      id: ({ id }) => (context.format === 'wide' ? id : short(id)),
      network: ({ network }) => network,
      state: ({ problem, state }) => problem ?? state,
      address: ({ ipv4 }) => ipv4,
      seen: ({ last_handshake_at: seen }) => (typeof seen === 'string' ? agoText(seen, context.terminal.nowMs()) : '-'),
      from: ({ endpoint }) => endpoint ?? '-',
      received: ({ rx_bytes: bytes }) => amount(bytes),
      sent: ({ tx_bytes: bytes }) => amount(bytes),
      files: ({ files_changed_at: changed }) =>
        typeof changed === 'string' ? agoText(changed, context.terminal.nowMs()) : '-',
      age: ({ inserted_at }) => agoText(inserted_at, context.terminal.nowMs()),
    },
    wide: ['from', 'received', 'sent', 'files'],
    nameOf: ({ name }) => name,
    idOf: ({ id }) => id,
    empty: 'There are no peers.',
  });
}

interface AddOptions {
  readonly network?: string;
  readonly expires?: string;
  readonly route?: string[];
  readonly dns?: string[];
}

/** Shows the secrets, which is possible once only, and the next step. */
function showMade({ show, tell }: Context, made: Schemas['PeerWithSecrets']): void {
  const { id, name, ipv4, ipv6, p12_password } = made;
  show(made, `${id}  ${ipv6 === null ? ipv4 : `${ipv4}, ${ipv6}`}`);
  tell(`The password of its PKCS#12 bundle, shown this once: ${p12_password}`);
  tell(`Next: longshore peer qr ${name}, peer config ${name}, or peer link ${name}`);
}

async function add(context: Context, name: string, { network, expires, route, dns }: AddOptions): Promise<void> {
  const body = {
    name,
    ...(network === undefined ? {} : { network }),
    ...(expires === undefined ? {} : { expires_at: expires }),
    ...(route === undefined ? {} : { routes: route }),
    ...(dns === undefined ? {} : { dns }),
  };
  showMade(context, await dataOf(context.api.POST('/api/forage/peers', { body })));
}

async function inspect(context: Context, name: string): Promise<void> {
  const peer = await findPeer(context, name);
  context.show(peer, JSON.stringify(peer, null, 2));
}

interface Period {
  readonly from?: string;
  readonly to?: string;
}

async function traffic(context: Context, name: string, { from, to }: Period): Promise<void> {
  const { id: peer } = await findPeer(context, name);
  const query = { ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) };
  const rows = await dataOf(context.api.GET('/api/forage/peers/{peer}/traffic', { params: { path: { peer }, query } }));
  const cells = rows.map(({ at, rx_bytes: received, tx_bytes: sent }) => [at, bytesText(received), bytesText(sent)]);
  context.show(rows, tableOf(['hour', 'received', 'sent'], cells, 'There is no traffic in this period.'));
}

async function rotate(context: Context, name: string): Promise<void> {
  const { id: peer } = await findPeer(context, name);
  showMade(context, await dataOf(context.api.POST('/api/forage/peers/{peer}/rotate', { params: { path: { peer } } })));
}

async function password(context: Context, name: string): Promise<void> {
  const { id: peer } = await findPeer(context, name);
  const made = await dataOf(context.api.POST('/api/forage/p12/{peer}/password', { params: { path: { peer } } }));
  context.show(made, made.p12_password);
}

const change =
  (verb: 'enable' | 'disable' | 'rm') =>
  (context: Context, names: readonly string[]): Promise<void> =>
    each(context, names, async (name) => {
      const { id: peer } = await findPeer(context, name);
      const params = { path: { peer } };
      const body = { enabled: verb === 'enable' };
      if (verb === 'rm') await doneOf(context.api.DELETE('/api/forage/peers/{peer}', { params }));
      else await doneOf(context.api.PATCH('/api/forage/peers/{peer}', { params, body }));
      return name;
    });

export function addPeers(program: Command, terminal: Terminal): void {
  const peer = program.command('peer').description('Manage VPN peers');
  const named = (name: string, description: string): Command => peer.command(name).description(description);
  const time = pastTime(() => terminal.nowMs());
  const expires = (command: Command): Command =>
    command.option(
      '--expires <time>',
      endText,
      endTime(() => terminal.nowMs()),
    );
  listing(named('ls', 'List peers')).action(action(terminal, list));
  expires(named('add <name>', 'Create a peer, with its addresses, keys and certificate'))
    .option('--network <name>', 'VPN network (default: the network of the server)')
    .option('--route <cidr>', 'Destinations to reach through the VPN (default: the routes of the network)', collect)
    .option('--dns <address>', 'DNS server of the peer (default: the DNS servers of the network)', collect)
    .action(action<[string, AddOptions]>(terminal, add));
  showing(named('inspect <peer>', 'Show a peer, as JSON')).action(action<[string]>(terminal, inspect));
  showing(named('traffic <peer>', 'Show what a peer sent and got in each hour, as its server counted it'))
    .option('--from <time>', `Start of the period, ${pastText} (default: this month)`, time)
    .option('--to <time>', 'End of the period (default: now)', time)
    .action(action<[string, Period]>(terminal, traffic));
  named('config <peer>', 'Print a configuration file of a peer')
    .addOption(new Option('--format <format>', 'Kind of configuration file').choices(formats).default('wireguard'))
    .option('-o, --output <file>', 'File to write to, readable only by you (default: standard output)')
    .action(action<[string, { format: Format; output?: string }]>(terminal, config));
  named('qr <peer>', 'Print the WireGuard configuration of a peer as a QR code')
    .option('-o, --output <file>', 'SVG file to write to (default: the terminal)')
    .action(action<[string, { output?: string }]>(terminal, qr));
  expires(named('link <peer>', 'Create download links to the files of a peer, for a device that is not signed in'))
    .addOption(new Option('--once', 'Create one link that one browser can open, once').conflicts('pac'))
    .option('--pac', 'Create a link to the proxy auto-config (PAC) file only')
    .action(action<[string, LinkOptions]>(terminal, link));
  listing(named('links <peer>', 'List the links of a peer that are still good, without their addresses')).action(
    action<[string]>(terminal, links),
  );
  named('unlink <peer> <id>', 'Revoke what one "peer link" created').action(action<[string, string]>(terminal, unlink));
  named('password <peer>', 'Set a new password for the PKCS#12 bundle of a peer, and print it').action(
    action<[string]>(terminal, password),
  );
  named('rotate <peer>', 'Replace the keys, certificate and password of a peer, and revoke its links').action(
    action<[string]>(terminal, rotate),
  );
  named('disable <peer...>', 'Disable peers until they are enabled again').action(
    action<[string[]]>(terminal, change('disable')),
  );
  named('enable <peer...>', 'Re-enable peers').action(action<[string[]]>(terminal, change('enable')));
  named('rm <peer...>', 'Remove peers').action(action<[string[]]>(terminal, change('rm')));
}
