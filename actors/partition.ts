/** The runtime's partition, with Longshore as its domain. */
import type { Longshore } from './domain/domain.ts';
import type * as runtime from './runtime/partition.ts';

export type Partition = runtime.Partition<Longshore>;
export type PartitionOptions = runtime.PartitionOptions<Longshore>;
