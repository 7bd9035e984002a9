/** The members' bucket, in memory. */
import type { MemberStore } from '../../../actors/membership/member-store.ts';
import type { MemberId } from '../../../schemas/ids.ts';

export function createMembers() {
  const members = new Map<MemberId, { value: string; revision: number }>();
  let revision = 0;
  const set = (id: MemberId, value: string): number => {
    members.set(id, { value, revision: ++revision });
    return revision;
  };
  const store: MemberStore = {
    list: async () => Promise.resolve(Array.from(members, ([id, member]) => ({ id, ...member }))),
    readSome: async (ids) =>
      Promise.resolve(
        ids.flatMap((id) => {
          const member = members.get(id);
          return member === undefined ? [] : [{ id, ...member }];
        }),
      ),
    read: async (id) => Promise.resolve(members.get(id) ?? { revision: 0, value: null }),
    replace: async (id, value, expected) =>
      Promise.resolve((members.get(id)?.revision ?? 0) === expected ? set(id, value) : undefined),
  };
  /** @returns a function that restores the present state */
  const copy = (): (() => void) => {
    const copied = { members: [...members], revision };
    return () => {
      members.clear();
      for (const [id, member] of copied.members) members.set(id, member);
      ({ revision } = copied);
    };
  };
  return { store, set, copy };
}
