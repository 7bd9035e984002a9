/** Lines of the audit in virtual time: each write that was answered has exactly one. */
import type { AuditLine } from '../../../schemas/api/audit/line.ts';
import type { TenantId } from '../../../schemas/ids.ts';
import type { Cause } from '../../../schemas/wire/audit.ts';

/** The author of a tenant's writes. */
export const causeOf = (tenant: TenantId, action: string): Cause => ({
  by: { tenant, subject: 'sim', token: null, address: null },
  action,
  target: {},
});

/**
 * @param answered requests whose write was answered in a way that leaves a line
 * @param stored the messages of the stream AUDIT
 */
export function auditFaults(
  answered: ReadonlyMap<string, string>,
  stored: readonly { readonly payload: string }[],
): string[] {
  const told = new Map<string, Map<string, string>>();
  const faults: string[] = [];
  for (const { payload } of stored) {
    for (const line of JSON.parse(payload) as readonly AuditLine[]) {
      const lines = told.get(line.request_id) ?? new Map<string, string>();
      const text = JSON.stringify(line);
      if ((lines.get(line.id) ?? text) !== text) faults.push(`the line ${line.id} was told in two ways`);
      lines.set(line.id, text);
      told.set(line.request_id, lines);
    }
  }
  for (const [rid, what] of answered) {
    const lines = told.get(rid)?.size ?? 0;
    if (lines !== 1) faults.push(`the request ${rid} (${what}) has ${lines} lines in the audit`);
  }
  return faults;
}
