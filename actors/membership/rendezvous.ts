/**
 * Assigns partitions to members by rendezvous hashing (Thaler and Ravishankar, 1998). Every process
 * computes the same answer from the same members, and when a member joins or leaves, only its own
 * partitions move. Pure.
 */
import type { MemberId } from '../../schemas/ids.ts';
import { hashOf } from '../../schemas/wire/subjects.ts';

/**
 * Spreads the bits of the hash (the finalizer of MurmurHash3), because FNV-1a alone gives similar
 * texts similar scores.
 */
function mix(hash: number): number {
  let mixed = hash ^ (hash >>> 16);
  mixed = Math.imul(mixed, 0x85ebca6b);
  mixed ^= mixed >>> 13;
  mixed = Math.imul(mixed, 0xc2b2ae35);
  return (mixed ^ (mixed >>> 16)) >>> 0;
}

/** `undefined` if there are no members. */
export function memberFor(partition: number, members: Iterable<MemberId>): MemberId | undefined {
  let best: { readonly member: MemberId; readonly score: number } | undefined;
  for (const member of members) {
    const score = mix(hashOf(`${member}/${partition}`));
    const isBetter = best === undefined || score > best.score || (score === best.score && member > best.member);
    if (isBetter) best = { member, score };
  }
  return best?.member;
}
