/** The streams that hold what the workload writes. */
import { buckets } from '../../../schemas/records/buckets.ts';
import { limits } from '../../../schemas/limits.ts';
import { partitionOf } from '../../../schemas/wire/subjects.ts';
import type { Random } from '../../actors/support/random.ts';
import { tenants } from '../load/tenants.ts';

/** The stream behind the bucket of a random tenant's partition. */
export const stateStreamOf = (random: Random): string =>
  `KV_${buckets.state.bucket(partitionOf(random.pick(tenants), limits.partitions))}`;
