/** `audit`: the lines of the audit log. */
import type { Command } from 'commander';
import { limits } from '../../schemas/limits.ts';
import type { Schemas } from '../client/api.ts';
import { itemsOf } from '../client/pages.ts';
import { action, type Context, type Terminal } from '../context.ts';
import { WrongUsage } from '../terminal/errors.ts';
import { pastText, pastTime, wholeNumber } from '../terminal/arguments.ts';
import { tableOf } from '../terminal/table.ts';

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

const columns = ['time', 'by', 'address', 'action', 'target', 'outcome', 'request'];

/** A container by its id, a secret by its name; several parts with their names. */
export function targetText(target: Line['target']): string {
  const parts = Object.entries(target);
  return parts.length === 1 ? String(parts[0]?.[1]) : parts.map(([name, value]) => `${name}=${value}`).join(' ');
}

export function outcomeText({ outcome, detail }: Line): string {
  const { scope, dimension, fields, session } = detail ?? {};
  const why = scope ?? dimension ?? fields?.join(', ');
  if (session !== undefined) return `${session.reason}, ${session.bytes_in} bytes in, ${session.bytes_out} out`;
  return why === undefined ? outcome : `${outcome}: ${why}`;
}

function rowOf(line: Line, isOfAll: boolean): string[] {
  const { ts, by, action: what, target, request_id: request, tenant } = line;
  const who = by.subject ?? '-';
  const cells = [ts, who, by.address ?? '-', what, targetText(target) || '-', outcomeText(line), request];
  return isOfAll ? [tenant ?? '-', ...cells] : cells;
}

async function audit({ api, show }: Context, { lines, all, tenant, ...filters }: AuditOptions): Promise<void> {
  if (all === true && tenant !== undefined) throw new WrongUsage('--all and --tenant: give one of them');
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
  const oldestFirst = newest.toReversed();
  const rows = oldestFirst.map((line) => rowOf(line, all === true));
  show(oldestFirst, tableOf(all === true ? ['tenant', ...columns] : columns, rows, 'There are no such lines.'));
}

export function addAudit(program: Command, terminal: Terminal): void {
  const time = pastTime(() => terminal.nowMs());
  program
    .command('audit')
    .description('Show the audit log, oldest line first')
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
