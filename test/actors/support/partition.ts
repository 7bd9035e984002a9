/** A partition over any store, asked by function calls. */
import { randomUUID } from 'node:crypto';
import { Fleet } from '../../../actors/endpoints/fleet.ts';
import { createDomain, type DomainOptions } from '../../../actors/domain/domain.ts';
import type { Partition, PartitionOptions } from '../../../actors/partition.ts';
import { Partition as RuntimePartition } from '../../../actors/runtime/partition.ts';
import { sleep, within } from '../../../lib/time/backoff.ts';
import { createSlices } from '../../../lib/time/slices.ts';
import { systemClock, type Clock } from '../../../lib/time/clock.ts';
import type { ReadAsk, WriteAsk } from '../../../schemas/wire/asks.ts';
import type { AnswerCode } from '../../../schemas/wire/codec.ts';
import { endless, quietLog } from '../support.ts';
import { memoryJournals } from './journals.ts';
import { createMemorySink } from './memory-store.ts';

type Loose<T> = T extends { rid: string } ? Omit<T, 'rid' | 'budgetMs'> : never;
export type LooseRead = Loose<ReadAsk>;
export type LooseWrite = Loose<WriteAsk>;

export interface Answered {
  readonly code: AnswerCode;
  readonly body: string;
}

export const quietObserver: PartitionOptions['observer'] = {
  turn: () => {},
  commit: () => {},
  quarantined: () => {},
  uncheckpointed: () => {},
  parked: () => {},
  room: () => {},
  load: () => {},
  unknown: () => {},
  worked: () => {},
};

export function createPartition(
  {
    fleet,
    ledger,
    incarnation = 0,
    ...parts
  }: Pick<PartitionOptions, 'store' | 'events'> & Partial<PartitionOptions & DomainOptions>,
  clock: Clock = systemClock,
): Partition {
  const known = new Fleet({ clock, partitions: 1, hostUnknownMs: 60_000 });
  return new RuntimePartition({
    number: 0,
    audit: createMemorySink([]),
    domain: createDomain({ cluster: 'c', incarnation, fleet: fleet ?? known, ledger: ledger ?? known.placements }),
    lease: endless,
    journals: memoryJournals(),
    readAhead: async () => Promise.resolve(undefined),
    mayTake: async () => Promise.resolve(true),
    clock,
    slices: createSlices(systemClock),
    log: quietLog,
    newToken: randomUUID,
    onEffects: () => {},
    onLoaded: () => {},
    onUnloadable: () => {},
    onWentBack: () => {},
    onLost: () => {},
    observer: quietObserver,
    ...parts,
  });
}

export const readOf = async (partition: Partition, ask: LooseRead): Promise<Answered> =>
  within(
    new Promise((resolve) =>
      partition.read({ rid: 'r', budgetMs: 10_000, ...ask }, (code, body) => resolve({ code, body })),
    ),
    10_000,
    ask.type,
  );

export const writeOf = async (partition: Partition, ask: LooseWrite, budgetMs = 10_000): Promise<Answered> =>
  within(
    new Promise((resolve) =>
      partition.write({ rid: 'r', budgetMs, ...ask }, undefined, (code, body) => resolve({ code, body })),
    ),
    budgetMs,
    ask.type,
  );

/** True if the answer does not come at once. */
export const isPending = async (answer: Promise<Answered>): Promise<boolean> =>
  Promise.race([answer.then(() => false), sleep(20).then(() => true)]);
