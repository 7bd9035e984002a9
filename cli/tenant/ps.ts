/** `ps`. */
import { Option, type Command } from 'commander';
import { oneLine } from '../../schemas/visible.ts';
import { containerStatuses } from '../../schemas/words.ts';
import { followFrames, valueOf, type Open } from '../client/follow.ts';
import { action, type Context, type Terminal } from '../context.ts';
import { collect } from '../terminal/arguments.ts';
import { listing, shortIds, showList, type List } from '../terminal/list.ts';
import { agoText, imageText } from '../terminal/table.ts';
import { overviewOf, type Item, type OverviewQuery } from './find.ts';
import { lineOf } from './progress.ts';
import { portsText, stateText } from './state.ts';

interface PsOptions {
  readonly label?: readonly string[];
  readonly status?: readonly (typeof containerStatuses)[number][];
  readonly project?: readonly string[];
  readonly watch?: true;
}

const labelsText = ({ labels }: Item): string =>
  Object.entries(labels)
    .map(([key, value]) => oneLine(value === '' ? key : `${key}=${value}`))
    .join(', ');

async function ps(context: Context, { watch, label, status, project }: PsOptions): Promise<void> {
  const filters = Object.entries({ label, status, project }).filter(([, values]) => values !== undefined);
  const only = Object.fromEntries(filters) as OverviewQuery;
  if (watch === true) return watchAll(context, only);
  const items = await overviewOf(context, { ...only, include: ['status'] });
  const isWide = context.format === 'wide';
  const short = shortIds(items.map(({ container }) => container.id));
  // No column if no container has labels.
  const hasLabels = items.some((one) => labelsText(one) !== '');
  const columns: List<Item>['columns'] = {
    name: ({ container }) => container.name,
    id: ({ container: { id } }) => (isWide ? id : short(id)),
    image: ({ container }) => imageText(container),
    status: stateText,
    ports: portsText,
    restarts: ({ status: view }) => String(view?.restart_count ?? '-'),
    project: (one) => one.project ?? '-',
    host: ({ container }) => container.host_key ?? '-',
    age: ({ container }) => agoText(container.inserted_at, context.terminal.nowMs()),
    ...(hasLabels ? { labels: labelsText } : {}),
  };
  showList(context, {
    items,
    columns,
    wide: ['restarts', 'project'],
    // Both parts have the same status.
    toValue: ({ container, status: view, ...beside }) => ({ ...container, ...view, ...beside }),
    nameOf: ({ container }) => container.name,
    idOf: ({ container }) => container.id,
    empty: 'There are no containers.',
  });
}

/** Prints a line for each container that matches, and for each change of it, until Ctrl-C. */
async function watchAll({ api, terminal, isJson }: Context, query: OverviewQuery): Promise<void> {
  const told = new Map<string, string>();
  const write = (line: string): void => void terminal.stdout.write(`${line}\n`);
  const open: Open = (header, signal) =>
    api.GET('/api/v2/containers/watch', { params: { header, query }, parseAs: 'stream', signal });
  for await (const frame of followFrames(open, terminal.signal)) {
    const { event } = frame;
    if (event !== 'item' && event !== 'removed') continue;
    // The server is trusted to send what its document says.
    const value = valueOf(frame) as Item | { readonly id: string };
    if (isJson) {
      write(JSON.stringify({ [event]: value }));
      continue;
    }
    const id = 'container' in value ? value.container.id : value.id;
    const line = 'container' in value ? watchLine(value) : 'removed';
    if (told.get(id) !== line) write(`${id}  ${line}`);
    if (event === 'removed') told.delete(id);
    else told.set(id, line);
  }
}

const watchLine = ({ container, status }: Item): string =>
  [container.name, status === undefined ? container.status : lineOf(status), `on ${container.host_key ?? '-'}`]
    .map(oneLine)
    .join('  ');

export function addPs(program: Command, terminal: Terminal): void {
  listing(program.command('ps').description('List containers'))
    .option('-l, --label <key[=value]>', 'Label that each listed container has, or one of several', collect)
    .addOption(
      new Option('--status <status>', 'Status that each has, or one of several')
        .choices(containerStatuses)
        .argParser(collect),
    )
    .option('--project <name>', 'Project that each is of, or one of several', collect)
    .option('-w, --watch', 'Show those that match, and then each change, until Ctrl-C')
    .action(action<[PsOptions]>(terminal, ps));
}
