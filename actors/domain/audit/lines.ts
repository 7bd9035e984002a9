/**
 * The lines that writes leave in the audit (ADR 42). A write of the API has one, whatever its
 * outcome; messages between partitions, and changes that the system makes by itself, have none.
 */
import { timestamp } from '../../../lib/time/timestamp.ts';
import type { TenantId } from '../../../schemas/ids.ts';
import { isSuccessCode } from '../../../schemas/errors.ts';
import { detailOf, leavesLine, outcomeOf } from '../../../schemas/wire/audit.ts';
import type { WriteAsk } from '../../../schemas/wire/asks.ts';
import { subjects } from '../../../schemas/wire/subjects.ts';
import { isSuccess, type LineDraft, type Reply } from '../../runtime/domain.ts';

export const linesOf = (ask: WriteAsk, reply: Reply, nowMs: number): readonly LineDraft[] => {
  const place = placeOf(ask);
  if (ask.type === 'audit.note' || ask.type === 'audit.note_operator') {
    if (!isSuccessCode(reply.code)) return [];
    return ask.notes.map(({ by, action, target, outcome, detail }) => ({
      subject: place.subject,
      line: { ts: timestamp(nowMs), action, outcome, tenant: place.tenant, by, request_id: ask.rid, target, detail },
    }));
  }
  if (ask.cause === undefined || !leavesLine(reply.code, ask.type)) return [];
  const { by, action, target } = ask.cause;
  return [
    {
      subject: place.subject,
      line: {
        ts: timestamp(nowMs),
        action,
        outcome: outcomeOf(reply.code),
        tenant: place.tenant,
        by,
        request_id: ask.rid,
        target: isSuccess(reply) ? { ...target, ...madeBy(ask, reply) } : target,
        detail: detailOf(reply.code, reply.body),
      },
    },
  ];
};

/** The subject of a line, and the tenant that the write concerns; `null` if only operators. */
function placeOf(ask: WriteAsk): { readonly subject: string; readonly tenant: TenantId | null } {
  if ('tenant' in ask) return { subject: subjects.auditOfTenant(ask.tenant), tenant: ask.tenant };
  return { subject: subjects.auditOfOperators, tenant: null };
}

/** The ids of the resources that a write made, which its path does not name. */
function madeBy(
  ask: WriteAsk,
  { repeat }: Reply & { readonly repeat?: { readonly id: string } },
): Record<string, string> {
  switch (ask.type) {
    case 'container.create':
    case 'spec.create':
      return { id: repeat?.id ?? ask.id };
    case 'peer.create':
      return { peer: ask.peer };
    case 'peer.token.create':
      return { token: ask.token.id };
    case 'peer.link.create':
      return { link: ask.link.id };
    case 'peer.link.redeem':
      return { peer: ask.peer, link: ask.link };
    case 'key.create':
      return { key_id: ask.made.id };
    case 'network.create':
      return { network: ask.network };
    case 'host.create':
    case 'host.enrol':
    case 'host.renew':
      return { key: ask.host };
    case 'signing_key.put':
      return { signing_key: ask.key.id };
    default:
      return {};
  }
}
