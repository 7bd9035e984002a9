/**
 * Judges the audit of a run: whatever was killed, cut off or full, a write that was answered has
 * its line, and no request has two.
 */
import Type from 'typebox';
import { decoder } from '../../lib/decode.ts';
import { AuditLine } from '../../schemas/api/audit/line.ts';
import { settledFaults, type Ask } from './asking.ts';
import type { Operation, RequestKind } from './check/history.ts';
import { grouped } from './check/items.ts';
import { overlaps, type Span } from './load/silence.ts';
import type { Judgement } from './judge.ts';
import type { World } from './world/world.ts';

const pageSize = 500;
/** Far more than a run writes; a cursor that turns in a circle ends here. */
const pagesMax = 1_000;

const actions: Readonly<Partial<Record<RequestKind, string>>> = {
  create: 'container.create',
  start: 'container.start',
  stop: 'container.stop',
  patch: 'container.update',
  delete: 'container.delete',
};

/** Answers that change nothing and leave no line (docs/api). */
const withoutLine: ReadonlySet<string> = new Set(['unavailable', 'rate_limited']);

const decodePage = decoder(
  Type.Object({
    data: Type.Array(Type.Object(AuditLine.properties)),
    next_cursor: Type.Optional(Type.Union([Type.String(), Type.Null()])),
  }),
);

async function linesOf(tenant: string, ask: Ask): Promise<AuditLine[]> {
  const lines: AuditLine[] = [];
  let cursor = '';
  for (let page = 0; page < pagesMax; page++) {
    const { data, next_cursor: next } = await ask(`/api/v2/audit?limit=${pageSize}${cursor}`, decodePage);
    lines.push(...data);
    if (next == null) return lines;
    cursor = `&cursor=${encodeURIComponent(next)}`;
  }
  throw new Error(`${tenant}: the audit has more than ${pagesMax} pages`);
}

/** Outcome that the line of an answered write must have; `undefined` if it needs no line. */
function outcomeOf({ result }: Operation): string | undefined {
  if (result.kind === 'ok') return 'done';
  return result.kind === 'refused' && !withoutLine.has(result.code) ? result.code : undefined;
}

/**
 * Faults in the audit of one tenant.
 * @param forgotten answers of these times may have no line
 */
export function auditFaults(
  operations: readonly Operation[],
  lines: readonly AuditLine[],
  forgotten: readonly Span[] = [],
): string[] {
  const faults: string[] = [];
  const byRequest = grouped(lines, ({ request_id }) => request_id);
  for (const operation of operations) {
    const { request, requestId = '', tenant, process } = operation;
    const action = actions[request.kind];
    const found = byRequest.get(requestId) ?? [];
    const outcome = action === undefined ? undefined : outcomeOf(operation);
    const what = `${request.kind} ${requestId}`;
    if (found.length > 1) faults.push(`${what} has ${found.length} lines: ${found.map(({ id }) => id).join(', ')}`);
    const mayLack = outcome === undefined || overlaps(spanOf(operation), forgotten);
    if (found.length === 0 && !mayLack) faults.push(`${what} was answered ${outcome}, and has no line`);
    for (const line of found) {
      if (line.action !== action) faults.push(`${what} has a line about ${line.action}`);
      // Done, then gone, then repeated by the gateway: see `Result`.
      const isRepeated = outcome === 'not_found' && line.outcome === 'done';
      if (outcome !== undefined && line.outcome !== outcome && !isRepeated)
        faults.push(`${what} was answered ${outcome}, and its line says ${line.outcome}`);
      if (line.tenant !== tenant || line.by.subject !== `${tenant}-user`)
        faults.push(`the line of ${what} of ${process} names ${line.tenant} and ${line.by.subject}`);
    }
  }
  return faults;
}

/** From its call to its answer. */
export const spanOf = ({ invokedMs, answeredMs }: Operation): Span => ({
  fromMs: invokedMs,
  toMs: answeredMs ?? Infinity,
});

/**
 * Once all faults are healed. An owner that has just taken a partition over first tells what its
 * predecessors left.
 */
export async function judgeAudit(
  world: World,
  operations: readonly Operation[],
  forgotten: readonly Span[],
): Promise<Judgement> {
  const faults = await settledFaults(world, async (askerOf) => {
    const found: string[] = [];
    for (const [tenant, its] of grouped(operations, (operation) => operation.tenant)) {
      found.push(...auditFaults(its, await linesOf(tenant, await askerOf(tenant)), forgotten));
    }
    return found;
  });
  return { what: 'every answered write has one line in the audit', faults };
}
