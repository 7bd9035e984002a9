/** `quota` and `usage`. */
import type { Command } from 'commander';
import { dataOf } from '../client/api.ts';
import { allOf } from '../client/pages.ts';
import { action, type Context, type Terminal } from '../context.ts';
import { pastText, pastTime } from '../terminal/arguments.ts';
import { shortIds } from '../terminal/list.ts';
import { amountText } from '../terminal/quantities.ts';
import { tableOf } from '../terminal/table.ts';

async function quota(context: Context): Promise<void> {
  const { usage, caps } = await dataOf(context.api.GET('/api/v2/compute/quota'));
  const rows = Object.entries(caps).map(([name, cap]) => [
    name,
    amountText(name, (usage as Readonly<Record<string, number>>)[name] ?? 0),
    cap === null ? 'no cap' : amountText(name, cap),
  ]);
  context.show({ usage, caps }, tableOf(['', 'used', 'cap'], rows, ''));
}

async function usage(context: Context, { from, to }: { readonly from?: string; readonly to?: string }): Promise<void> {
  const range = { ...(from === undefined ? {} : { from }), ...(to === undefined ? {} : { to }) };
  const first = await dataOf(context.api.GET('/api/v2/compute/usage', { params: { query: { ...range, limit: 1 } } }));
  // Whole hours, so that all pages are about the same hours.
  const hours = { from: first.from, to: first.to };
  const containers = await allOf(async (query) => {
    const page = await context.api.GET('/api/v2/compute/usage', { params: { query: { ...hours, ...query } } });
    const { data, ...rest } = page;
    return data === undefined ? { ...rest } : { ...rest, data: { ...data, data: data.data.containers } };
  });
  const words = (of: { container_seconds: number; cpu_seconds: number; mem_byte_seconds: string }): string[] => [
    String(Math.round(of.container_seconds)),
    of.cpu_seconds.toFixed(1),
    (Number(of.mem_byte_seconds) / 1024 ** 3 / 3600).toFixed(2),
  ];
  const rows = containers.map((one) => [one.name ?? shortIds([one.id])(one.id), ...words(one)]);
  const table = tableOf(['name', 'seconds', 'cpu seconds', 'GiB hours'], [...rows, ['all', ...words(first.total)]], '');
  context.show({ ...first, containers }, `From ${first.from} to ${first.to}\n${table}`);
}

export function addUsage(program: Command, terminal: Terminal): void {
  const time = pastTime(() => terminal.nowMs());
  program.command('quota').description('Show quota usage').action(action(terminal, quota));
  program
    .command('usage')
    .description('Show the resources that each container used')
    .option('--from <time>', `Start of the period, ${pastText} (default: this month)`, time)
    .option('--to <time>', 'End of the period (default: now)', time)
    .action(action<[{ from?: string; to?: string }]>(terminal, usage));
}
