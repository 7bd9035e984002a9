/**
 * Journals of members in a restored cluster. All are sealed, so that no process from before the
 * restore puts anything into them.
 */
import { randomUUID } from 'node:crypto';
import type { NatsConnection } from '@nats-io/transport-node';
import { encodeValue, type Commit } from '../../actors/runtime/journal/codec.ts';
import type { Mark } from '../../actors/runtime/journal/mark.ts';
import { readSealed, sealJournal, type Sealing } from '../../actors/runtime/journal/read-journal.ts';
import type { EpochRecord } from '../../actors/runtime/store/epoch.ts';
import { createJournalStore, membersWithJournals } from '../../actors/runtime/store/jetstream-store.ts';
import { systemClock } from '../../lib/time/clock.ts';
import { createSlices, runAtOnce } from '../../lib/time/slices.ts';
import type { MemberId } from '../../schemas/ids.ts';
import type { RestoreMark } from './mark.ts';
import { seconds } from '../../schemas/limits/units.ts';

/** The time to seal a restored journal. */
const restoreJournalMs = 30 * seconds;

/** Of every restored journal. After a sleep they might be those of living members. */
export async function sealJournals(nc: NatsConnection, mark: Pick<RestoreMark, 'check'>): Promise<void> {
  for (const member of await membersWithJournals(nc)) {
    await mark.check();
    await seal(nc, member);
  }
}

/**
 * The commits of a partition in the restored journals that its mark names. Journals are saved
 * before partitions, so a mark may name one that began later. All that the backup has to know of
 * the partition is then in its bucket, and an empty journal takes the place.
 * @throws LoadError where a commit may be missing
 */
export async function restoredCommits(nc: NatsConnection, partition: number, mark: Mark): Promise<Commit[]> {
  const commits: Commit[] = [];
  for (const member of mark.journals) commits.push(...(await commitsOf(nc, partition, member)));
  return commits;
}

async function commitsOf(nc: NatsConnection, partition: number, member: MemberId): Promise<Commit[]> {
  const store = createJournalStore(nc, member, randomUUID);
  const sealing = await seal(nc, member);
  if (sealing.kind === 'gone') {
    const record: EpochRecord = { token: randomUUID(), owner: member, takenAtMs: systemClock.nowMs(), sealed: true };
    await store.takeEpoch(encodeValue(record), 0);
  }
  if (sealing.kind !== 'sealed') return [];
  const { signal } = new AbortController();
  const journal = await readSealed({ store, member }, sealing.revision, createSlices(systemClock), signal);
  return runAtOnce(journal.commitsOf(partition));
}

async function seal(nc: NatsConnection, member: MemberId): Promise<Sealing> {
  let failure: unknown;
  const sealing = sealJournal({
    store: createJournalStore(nc, member, randomUUID),
    member,
    newToken: randomUUID,
    nowMs: () => systemClock.nowMs(),
    signal: AbortSignal.timeout(restoreJournalMs),
    onFailure: (error) => (failure = error),
  });
  return sealing.catch((error: unknown) => Promise.reject((failure ?? error) as Error));
}
