/**
 * The names that lead to a tenant's members, in the order of their list, as the resolvers of their
 * hosts have them (zones.ts). Kept as the members change, so that a page costs a page. Pure.
 */
import { isDeepStrictEqual } from 'node:util';
import { keyOfName, type TenantName } from '../../../schemas/api/tenant-network.ts';
import type { ContainerId } from '../../../schemas/ids.ts';
import { hasLabelBefore, labelOf } from '../../../schemas/tenant-network.ts';
import type { ContainerMember } from '../../../schemas/wire/members.ts';
import { Ordered } from '../order.ts';

export interface MemberName extends Pick<TenantName, 'name' | 'kind' | 'project'> {
  readonly id: ContainerId;
  /** The name of the container, which says who has a label. */
  readonly of: string;
}

export interface MemberNamesView {
  /** From the first after the key of a name (`keyOfName`). */
  after(key: string): Iterable<MemberName>;
}

const compareTexts = (one: string, other: string): number => (one < other ? -1 : one > other ? 1 : 0);

/** The order of the keys, but for names of one label: who has it is the first of them. */
function compare(one: MemberName, other: MemberName): number {
  const byName = compareTexts(one.name, other.name) || compareTexts(one.kind, other.kind);
  if (byName !== 0) return byName;
  if (one.kind === 'alias')
    return compareTexts(one.project ?? '', other.project ?? '') || compareTexts(one.id, other.id);
  const [first, second] = [one, other].map(({ id, of }) => ({ id, name: of })) as [Named, Named];
  return first.id === second.id ? 0 : hasLabelBefore(first, second) ? -1 : 1;
}
type Named = Parameters<typeof hasLabelBefore>[0];

/** Names of one label are in one place, since a page shows one of them. */
const placeOf = (one: MemberName): string =>
  one.kind === 'name' ? `${one.name} name` : keyOfName({ ...one, container_id: one.id });

function* namesOf(member: ContainerMember | undefined): Generator<MemberName, void, void> {
  if (member === undefined) return;
  const { id, name: of, project = null, aliases = [] } = member;
  if (project !== null) for (const name of aliases) yield { name, kind: 'alias', project, id, of };
  const label = labelOf(of);
  if (label !== undefined) yield { name: label, kind: 'name', project, id, of };
}

export class MemberNames implements MemberNamesView {
  readonly #names = new Ordered<MemberName>(compare);

  /** One member is another now, has come or has gone. */
  change(before: ContainerMember | undefined, after: ContainerMember | undefined): void {
    const [were, are] = [[...namesOf(before)], [...namesOf(after)]];
    if (isDeepStrictEqual(were, are)) return;
    for (const one of were) this.#names.delete(one);
    for (const one of are) this.#names.add(one);
  }

  *after(key: string): Generator<MemberName, void, void> {
    let last: MemberName | undefined;
    for (const one of this.#names.from((name) => placeOf(name) <= key)) {
      const isSameLabel = one.kind === 'name' && last?.kind === 'name' && last.name === one.name;
      if (isSameLabel) continue;
      last = one;
      yield one;
    }
  }
}
