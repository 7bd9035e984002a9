/** What containers have beside what runs, such as labels, for lists that name containers. */
import type { LaneKind } from '../../lib/rpc/partition-client.ts';
import { decodeAnswer } from '../../lib/rpc/decode.ts';
import type { Metadata } from '../../schemas/api/fields/container.ts';
import type { ContainerId } from '../../schemas/ids.ts';
import { succeeded, tenantOf, type Call, type Services } from '../http/call.ts';

/**
 * By container, as it is now; without those whose metadata is not known any more. An owner of the
 * last release knows none, and a list is better without it than not at all.
 */
export async function metadataOf(
  { ask }: Pick<Services, 'ask'>,
  call: Call,
  ids: Iterable<ContainerId>,
  { kind, deadlineMs }: { readonly kind: LaneKind; readonly deadlineMs: number },
): Promise<ReadonlyMap<ContainerId, Partial<Metadata>>> {
  const found = new Map<ContainerId, Partial<Metadata>>();
  let left = [...new Set(ids)];
  while (left.length > 0) {
    const question = { type: 'metadata.list', tenant: tenantOf(call), ids: left, ...call.origin } as const;
    const outcome = await ask(kind, question, deadlineMs);
    if (!succeeded(outcome)) return found;
    const { data, more } = decodeAnswer('metadata.list', outcome.body);
    for (const { id, ...metadata } of data) found.set(id, metadata);
    const last = data.at(-1);
    if (!more || last === undefined) return found;
    left = left.slice(left.indexOf(last.id) + 1);
  }
  return found;
}
