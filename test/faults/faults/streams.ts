/** The streams that hold what the workload writes. */
import { buckets, bucketStream } from '../../../schemas/records/buckets.ts';
import { limits } from '../../../schemas/limits.ts';
import { partitionOf } from '../../../schemas/wire/subjects.ts';
import type { Random } from '../../actors/support/random.ts';
import { tenants } from '../load/tenants.ts';
import type { World } from '../world/world.ts';

export interface Target {
  readonly text: string;
  find(world: World): Promise<string>;
}

/** The bucket of a random tenant's partition, or the journal of a random owner. */
export function targetOf(random: Random): Target {
  const stream = bucketStream(buckets.state.bucket(partitionOf(random.pick(tenants), limits.partitions)));
  const owner = random.below(2);
  if (random.once(2)) return { text: stream, find: async () => Promise.resolve(stream) };
  return {
    text: `the journal of owner ${owner + 1}`,
    find: async (world) => {
      const journals = (await world.members()).map(({ journal }) => bucketStream(journal));
      return journals[owner % journals.length] ?? stream;
    },
  };
}
