/** A2: each key has one writing role. */
import type { Guard } from '../mutant.ts';

export const a2: readonly Guard[] = [
  {
    name: 'report of another generation accepted',
    guard: 'A report counts only for the generation that is wanted now',
    file: 'actors/domain/container/observe.ts',
    changes: [{ in: 'observe', omit: 'item.generation !== record.generation' }],
    killedBy: 'test/actors/domain/container.test.ts',
  },
  {
    name: 'control-plane status accepted from a host',
    guard: 'An agent reports what it sees; the other statuses are the control plane’s',
    file: 'actors/domain/container/observe.ts',
    changes: [{ in: 'observe', never: '!reportable.has(item.observation.status)' }],
    killedBy: 'test/actors/domain/container.test.ts',
  },
  {
    name: 'container name used twice',
    guard: 'A name is checked in the turn that takes it',
    file: 'actors/domain/container/create.ts',
    changes: [{ in: 'create', never: 'tenant.names.has(ask.spec.name)' }],
    killedBy: 'test/actors/domain/container.test.ts',
  },
  {
    name: 'fence omitted',
    guard: 'Every write names its epoch, and the server refuses it once the epoch has moved (ADR 4)',
    file: 'actors/runtime/store/jetstream-store.ts',
    changes: [{ in: 'createJetStreamStore.fence', omit: 'head.set(expectedSequence, String(epoch))' }],
    killedBy: 'test/integration/actors/partitions/store.test.ts',
  },
  {
    name: 'lease check omitted',
    guard: 'Nothing is answered from memory without a valid lease (ADR 8)',
    file: 'actors/runtime/ownership.ts',
    changes: [{ in: 'Ownership.ready', replace: 'this.answering', by: 'this.serving' }],
    killedBy: 'test/actors/runtime/partition.test.ts',
  },
  {
    name: 'epoch taken from a live member',
    guard: 'A partition is taken from a member that is dead, or has released it (ADR 8)',
    file: 'actors/membership/partition-manager.ts',
    changes: [{ in: 'PartitionManager.#mayTake', always: 'this.membership.isDead(record.owner)' }],
    killedBy: 'test/actors/membership/partition-manager.test.ts',
  },
  {
    name: 'member declared dead at once',
    guard: 'A member is dead when its lease has been seen unchanged for 1.5 s (ADR 8)',
    file: 'actors/membership/membership.ts',
    changes: [{ in: 'Membership.#declareTheDead', replace: 'limits.leaseUnchangedMs', by: '0' }],
    killedBy: 'simulation',
  },
  {
    name: 'lease counted from the end of its renewal',
    guard: 'A lease counts from the start of its last renewal (ADR 8)',
    file: 'actors/membership/membership.ts',
    changes: [
      {
        in: 'Membership.#renewed',
        replace: 'startedMs + limits.leaseMs',
        by: 'this.#options.clock.monotonicMs() + limits.leaseMs',
      },
    ],
    killedBy: 'test/actors/membership/membership.test.ts',
  },
  {
    name: 'compare-and-set without the compare',
    guard: 'Epochs and members move only by compare-and-set (ADR 8)',
    file: 'lib/nats/kv-keys.ts',
    changes: [{ in: 'compareAndSet', omit: 'head.set(expectedSequence, String(expected))' }],
    killedBy: 'test/lib/nats/kv-keys.test.ts',
  },
];
