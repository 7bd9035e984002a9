/**
 * Carries out the effects of a commit: doorbells for hosts, notices for waiting gateways, changes
 * of the host directory, the outbox. Effects are idempotent, and any of them may be lost
 * (invariant A3).
 */
import type { NatsConnection } from '@nats-io/transport-node';
import type { HostKey, NetworkName } from '../schemas/ids.ts';
import type { Doorbell } from '../schemas/wire/directory.ts';
import { subjects } from '../schemas/wire/subjects.ts';
import { protocolFields } from '../schemas/wire/version.ts';
import { tenantsOf } from './domain/members.ts';
import type { Effect } from './domain/turn.ts';
import type { DirectoryExchange } from './endpoints/directory-exchange.ts';
import type { Fleet } from './endpoints/fleet.ts';
import type { StatusWatchers } from './endpoints/status-watchers.ts';
import type { Outbox } from './outbox/outbox.ts';
import type { Partition } from './partition.ts';
import { MemberBells } from './member-bells.ts';
import type { OutgoingEffect } from './runtime/journal/group.ts';

export interface EffectOptions {
  readonly nc: NatsConnection;
  readonly fleet: Pick<Fleet, 'server'>;
  readonly directory: DirectoryExchange;
  readonly outbox: Outbox;
  readonly watched: Pick<StatusWatchers, 'has'>;
}

export function createEffects({ nc, fleet, directory, outbox, watched }: EffectOptions) {
  function ring(host: HostKey, partition: number, requestId: string | null): void {
    const doorbell: Doorbell = { ...protocolFields, partition, rid: requestId };
    nc.publish(subjects.desired(host, partition), JSON.stringify(doorbell));
  }
  const members = new MemberBells(fleet, (host, partition) => ring(host, partition, null));
  return {
    carryOut(partition: Partition, effects: Iterable<OutgoingEffect<Effect>>): void {
      for (const effect of effects) {
        switch (effect.kind) {
          case 'doorbell':
            ring(effect.host, partition.number, effect.requestId);
            break;
          case 'members':
            members.note(partition, effect);
            break;
          case 'changed':
            if (watched.has(effect.tenant, effect.id)) nc.publish(subjects.changed(effect.tenant, effect.id));
            break;
          case 'directory':
            directory.change(partition, effect.host, effect.entry);
            break;
          case 'server':
            directory.serve(partition, effect.network, effect.server);
            break;
          case 'outbox':
            outbox.look(partition);
            break;
        }
      }
    },
    /** Rings the hosts that share tenants of these partitions with a host. */
    ringNeighbours(host: HostKey, partitions: Iterable<Partition>): void {
      for (const partition of partitions) {
        for (const tenant of tenantsOf(partition.view.wantedOn(host)))
          members.note(partition, { kind: 'members', tenant, rung: null });
      }
    },
    /**
     * Rings the hosts of the tenants of these partitions that have peers in the network.
     * @param served those that serve it, or did
     */
    ringNetwork(network: NetworkName, served: Iterable<HostKey>, partitions: Iterable<Partition>): void {
      for (const partition of partitions) {
        const tenants = [...partition.view.vpn.tenantsIn(network)];
        for (const tenant of tenants) members.note(partition, { kind: 'members', tenant, rung: null });
        if (tenants.length > 0) for (const host of served) ring(host, partition.number, null);
      }
    },
    /** Rings every host of the partition: doorbells of the previous owner may have been lost. */
    ringAll(partition: Partition): void {
      for (const host of partition.view.hostsWithContainers()) ring(host, partition.number, null);
    },
  };
}
