/** Metadata of containers, such as labels, for lists that name containers. */
import type { AskOwner, LaneKind } from '../../lib/rpc/partition-client.ts';
import { decodeAnswer } from '../../lib/rpc/decode.ts';
import { isMetadataEvent, type Event } from '../../schemas/api/event.ts';
import type { Metadata } from '../../schemas/api/fields/container.ts';
import type { ContainerId } from '../../schemas/ids.ts';
import { succeeded, tenantOf, type Call } from '../call.ts';
import { KiB } from '../../schemas/limits/units.ts';

/**
 * Bytes of metadata that a client's stream of events remembers, and those that each container takes
 * beside its labels.
 */
export const followedMetadataBytes = 32 * KiB;
const followedContainerBytes = 128;

type ById = ReadonlyMap<ContainerId, Partial<Metadata>>;

/**
 * By container, as it is now; without those whose metadata is not known any more. If the owner does
 * not answer, a list is better without it than not at all.
 */
export async function metadataOf(
  { ask }: { readonly ask: AskOwner },
  call: Call,
  ids: Iterable<ContainerId>,
  { kind, deadlineMs }: { readonly kind: LaneKind; readonly deadlineMs: number },
): Promise<ById> {
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

/**
 * Metadata for a client that follows events. The owner is asked once for each container, and again
 * after an event about its metadata. A bounded part is remembered.
 */
export class FollowedMetadata {
  readonly #known = new Map<ContainerId, Partial<Metadata>>();
  #bytes = 0;

  /** @param ask for those that are not known */
  async of(events: readonly Event[], ask: (ids: readonly ContainerId[]) => Promise<ById>): Promise<ById> {
    for (const { type, container_id: id } of events) if (isMetadataEvent(type)) this.#known.delete(id);
    const ids = [...new Set(events.map(({ container_id: id }) => id))];
    const unknown = ids.filter((id) => !this.#known.has(id));
    const found: ById = unknown.length === 0 ? new Map() : await ask(unknown);
    const shown = new Map(ids.map((id) => [id, found.get(id) ?? this.#known.get(id) ?? {}]));
    for (const [id, metadata] of found) this.#remember(id, metadata);
    return shown;
  }

  #remember(id: ContainerId, metadata: Partial<Metadata>): void {
    const bytes = followedContainerBytes + Buffer.byteLength(JSON.stringify(metadata));
    if (this.#bytes + bytes > followedMetadataBytes) {
      this.#known.clear();
      this.#bytes = 0;
    }
    this.#known.set(id, metadata);
    this.#bytes += bytes;
  }
}
