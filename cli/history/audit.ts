/** `audit`: the lines of the audit log. */
import type { Command } from 'commander';
import { limits } from '../../schemas/limits.ts';
import type { Schemas } from '../client/api.ts';
import { itemsOf } from '../client/pages.ts';
import { action, type Context, type Terminal } from '../context.ts';
import { containersOf } from '../tenant/find.ts';
import { WrongUsage } from '../terminal/errors.ts';
import { pastText, pastTime, wholeNumber } from '../terminal/arguments.ts';
import { listing, showList } from '../terminal/list.ts';

/** `audit`: lines shown. */
const cliAuditLines = 10_000;
const cliAuditLinesDefault = 50;

type Line = Schemas['AuditLine'];

interface AuditOptions {
  readonly lines: number;
  readonly from?: string;
  readonly to?: string;
  readonly action?: string;
  readonly subject?: string;
  readonly outcome?: string;
  readonly all?: true;
  readonly tenant?: string;
}

type Names = ReadonlyMap<string, string>;

/** A container or a secret by its name; several parts with their names. */
export function targetText(target: Line['target'], names: Names = new Map()): string {
  const parts = Object.entries(target).map(([name, value]) => [name, names.get(String(value)) ?? value] as const);
  return parts.length === 1 ? String(parts[0]?.[1]) : parts.map(([name, value]) => `${name}=${value}`).join(' ');
}

export function outcomeText({ outcome, detail }: Line): string {
  const { scope, dimension, fields, session } = detail ?? {};
  const why = scope ?? dimension ?? fields?.join(', ');
  if (session !== undefined) return `${session.reason}, ${session.bytes_in} bytes in, ${session.bytes_out} out`;
  return why === undefined ? outcome : `${outcome}: ${why}`;
}

/** Names of containers that exist; a token may see none. */
async function namesOf(context: Context): Promise<Names> {
  const all = await containersOf(context).catch(() => []);
  return new Map(all.map(({ id, name }) => [id, name]));
}

/** In UTC, to the second. */
export const timeText = (ts: string): string => ts.replace(/\.\d+Z$/, 'Z');

const columnsWith = (names: Names) => ({
  time: ({ ts }: Line) => timeText(ts),
  by: ({ by }: Line) => by.subject ?? '-',
  address: ({ by }: Line) => by.address ?? '-',
  action: (line: Line) => line.action,
  target: ({ target }: Line) => targetText(target, names) || '-',
  outcome: outcomeText,
  request: ({ request_id }: Line) => request_id,
});

async function audit(context: Context, { lines, all, tenant, ...filters }: AuditOptions): Promise<void> {
  if (all === true && tenant !== undefined) throw new WrongUsage('--all and --tenant: give one of them');
  const { api } = context;
  const isOfOperator = all === true || tenant !== undefined;
  const limit = Math.min(lines, limits.auditMax);
  const found = itemsOf<Line>((page) => {
    const query = { ...filters, ...page, limit };
    return isOfOperator
      ? api.GET('/api/v2/operator/audit', {
          params: { query: { ...query, ...(tenant === undefined ? {} : { tenant }) } },
        })
      : api.GET('/api/v2/audit', { params: { query } });
  });
  const newest: Line[] = [];
  for await (const line of found) {
    newest.push(line);
    if (newest.length === lines) break;
  }
  const columns = columnsWith(isOfOperator || newest.length === 0 ? new Map() : await namesOf(context));
  showList(context, {
    items: newest.toReversed(),
    columns: all === true ? { tenant: (line: Line) => line.tenant ?? '-', ...columns } : columns,
    nameOf: ({ request_id }) => request_id,
    empty: 'There are no such lines.',
  });
}

export function addAudit(program: Command, terminal: Terminal): void {
  const time = pastTime(() => terminal.nowMs());
  listing(program.command('audit').description('Show the audit log, oldest line first'))
    .option(
      '-n, --lines <count>',
      'Number of newest lines to show',
      wholeNumber(1, cliAuditLines),
      cliAuditLinesDefault,
    )
    .option('--from <time>', `Start of the period, ${pastText}`, time)
    .option('--to <time>', 'End of the period (default: now)', time)
    .option('--action <operation>', 'Only this action, such as container.create')
    .option('--subject <subject>', 'Only actions by this subject')
    .option('--outcome <outcome>', 'Only this outcome, such as done or forbidden')
    .option('--all', 'Show the lines of all tenants and operators (operators only)')
    .option('--tenant <tenant>', 'Only this tenant (operators only)')
    .action(action<[AuditOptions]>(terminal, audit));
}
