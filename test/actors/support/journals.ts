/** Journals of members over buckets in memory, which outlive the process that opened them. */
import { randomUUID } from 'node:crypto';
import { Journals, type JournalsOptions } from '../../../actors/runtime/journal/journals.ts';
import { systemClock } from '../../../lib/time/clock.ts';
import { createSlices } from '../../../lib/time/slices.ts';
import type { MemberId } from '../../../schemas/ids.ts';
import type { WriteOutcome } from '../../../actors/runtime/store/store.ts';
import type { Lease } from '../../../actors/runtime/lease.ts';
import { endless, quietLog } from '../support.ts';
import { MemoryBucket, createMemoryStore } from './memory-store.ts';

export const quietJournals: JournalsOptions['observer'] = { journal: () => {}, unknown: () => {} };

/** `buckets`: by member. */
export function memoryJournals(
  buckets = new Map<MemberId, MemoryBucket>(),
  more: Partial<JournalsOptions> = {},
): Journals {
  const bucketOf = (member: MemberId): MemoryBucket => {
    let bucket = buckets.get(member);
    if (bucket === undefined) buckets.set(member, (bucket = new MemoryBucket()));
    return bucket;
  };
  return new Journals({
    storeOf: (member) => createMemoryStore(bucketOf(member)),
    clock: systemClock,
    slices: createSlices(systemClock),
    log: quietLog,
    newToken: randomUUID,
    onSealed: () => {},
    onWentBack: () => {},
    observer: quietJournals,
    ...more,
  });
}

/** Journals whose puts wait while the gate is shut. */
export function gatedJournals() {
  const store = createMemoryStore(new MemoryBucket());
  let opened: Promise<WriteOutcome | undefined> = Promise.resolve(undefined);
  let open: (outcome?: WriteOutcome) => void = () => {};
  return {
    journals: memoryJournals(undefined, {
      storeOf: () => ({ ...store, put: async (write, epoch) => (await opened) ?? store.put(write, epoch) }),
    }),
    shut: () => void (opened = new Promise((resolve) => (open = resolve))),
    /** Lets writes go on. With an outcome, nothing is written, and writes get that outcome. */
    open: (outcome?: WriteOutcome) => {
      opened = Promise.resolve(undefined);
      open(outcome);
    },
  };
}

/**
 * Processes that have partitions one after the other, each as another member. The one before may be
 * dead: what it had is in its journal.
 */
export function successiveMembers(buckets = new Map<MemberId, MemoryBucket>()) {
  let members = 0;
  return (): { readonly journals: Journals; readonly lease: Lease } => ({
    journals: memoryJournals(buckets),
    lease: { ...endless, member: `member-${++members}` as MemberId },
  });
}
