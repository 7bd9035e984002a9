/**
 * All records of a partition, written again as memory has them: its store went back in time, as
 * where a server was restored from a snapshot of its disk. They go through commits and checkpoints
 * as any change does; keys that memory does not have are deleted.
 */
import { limits } from '../../schemas/limits.ts';
import type { Slices } from '../../lib/time/slices.ts';
import { sleep } from '../../lib/time/backoff.ts';
import type { Domain, DomainTypes } from './domain.ts';
import type { Serving } from './serving.ts';
import type { Store } from './store/store.ts';

/** What one commit writes again. */
export interface Rewritten<D extends DomainTypes> {
  readonly records: readonly D['Record'][];
  readonly deletes: readonly string[];
}

export interface RewriteOptions<D extends DomainTypes> {
  readonly serving: Serving<D>;
  readonly domain: Pick<Domain<D>, 'all' | 'records'>;
  readonly store: Pick<Store, 'pages'>;
  readonly slices: Slices;
  /** Whether the partition still is what it was. */
  readonly isOver: () => boolean;
  /** @returns false where there is no room for it now */
  readonly commit: (part: Rewritten<D>) => boolean;
}

/** @throws where the bucket can't be read */
export async function rewrite<D extends DomainTypes>(options: RewriteOptions<D>): Promise<void> {
  const { serving, domain, store, slices, isOver, commit } = options;
  const surplus: string[] = [];
  for await (const page of store.pages(1)) {
    for (const { key, value } of page) {
      if (value !== null && domain.records.isKey(key) && !serving.digest.has(key)) surplus.push(key);
    }
  }
  const work = parts(options, surplus);
  let part: Rewritten<D> | undefined = next(work);
  const hasMore = (): boolean => part !== undefined && !isOver();
  while (hasMore()) {
    // A step each, and a pause where the journal is full.
    await slices.repeat('rewrite', (isLate) => {
      while (part !== undefined && commit(part)) {
        part = next(work);
        if (isLate()) return false;
      }
      return true;
    });
    if (hasMore()) await sleep(limits.checkpointLookMs);
  }
  await serving.checkpointer.drain();
}

function* parts<D extends DomainTypes>(
  { serving, domain }: RewriteOptions<D>,
  surplus: readonly string[],
): Generator<Rewritten<D>, void, void> {
  // Some may be in no checkpoint yet.
  const known = new Set<string>();
  if (surplus.length > 0) for (const record of domain.all(serving.state)) known.add(domain.records.keyOf(record));
  const deletes = surplus.filter((key) => !known.has(key));
  for (let from = 0; from < deletes.length; from += limits.sweepChanges) {
    yield { records: [], deletes: deletes.slice(from, from + limits.sweepChanges) };
  }
  for (const record of domain.all(serving.state)) {
    if (serving.digest.has(domain.records.keyOf(record))) yield { records: [record], deletes: [] };
  }
}

function next<T>(work: Iterator<T, void, void>): T | undefined {
  const { done, value } = work.next();
  return done === true ? undefined : value;
}
