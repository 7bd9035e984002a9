/** The metrics of an actors process. */
import type { Registry } from 'prom-client';
import {
  counter,
  gauge,
  histogram,
  label,
  reading,
  readAtScrapes,
  record,
  type Recorders,
} from '../lib/metric-table.ts';
import type { PartitionManager } from './membership/partition-manager.ts';
import type { Fleet } from './endpoints/fleet.ts';
import type { OwnerOptions } from './owner.ts';
import type { Scrub } from './scrub/scrub.ts';

export const actorsPrefix = 'longshore_actors_';

const partition = label<number>('partition');

export const actorsMetrics = {
  turn: counter('turns_total', {
    help: 'Turns run, by kind of ask.',
    watch: 'How many turns the cluster runs, by kind.',
    labels: [label('kind')],
  }),
  commitSeconds: histogram('commit_duration_seconds', {
    help: 'Time from the put of a journal entry to its acknowledgement.',
    watch:
      'The disk under JetStream: a 99th percentile over 0.25 makes every write slow. Over 1 s the owner takes a new epoch and writes the commit again.',
    buckets: [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2],
  }),
  commitTurns: histogram('commit_turns', {
    help: 'Turns in one commit.',
    watch: 'Rises with the load, as commits group more turns.',
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512],
  }),
  quarantined: gauge('quarantined_records', {
    help: 'Records that the last load could not read.',
    watch: 'Over 0: see the runbook, “Quarantined records”.',
    labels: [partition],
  }),
  uncheckpointed: gauge('uncheckpointed_commits', {
    help: 'Commits of the partition that are in the journal and in no checkpoint yet.',
    watch:
      'Rises steadily for one partition: its checkpoint does not move. At 16 MiB of them its writes are refused, and those of a tenant with half of that: see the runbook, “Full journal”.',
    labels: [partition],
  }),
  journal: gauge('journal_entries', {
    help: 'Entries of this process’s journal with commits that are in no checkpoint yet.',
    watch:
      'Steadily over 1,200 of 2,048: checkpoints fall behind. From 1,536 on, commits of partitions that cannot checkpoint are put again: see the runbook, “Full journal”.',
  }),
  writesBlocked: gauge('writes_blocked', {
    help: '1 while the partition refuses writes: its journal is full, or too many turns wait.',
    watch: '1: the tenants’ writes get 503, reads work. See the runbook, “Full journal”.',
    labels: [partition],
  }),
  parked: gauge('events_parked', {
    help: 'Committed events and lines of the audit that wait in the bucket because the stream EVENTS or AUDIT does not accept them.',
    watch:
      'Over 0: the stream EVENTS or AUDIT accepts none; writes continue, and events and lines wait in the partition’s bucket, up to about 20,000 of each. See the runbook, “EVENTS stream refusing events”.',
    labels: [partition],
  }),
  load: counter('loads_total', {
    help: 'Loads of partitions.',
    watch: 'Rises when partitions move; otherwise an owner restarts or loses its lease.',
  }),
  unknown: counter('writes_unknown_total', {
    help: 'Commits and checkpoints that NATS did not acknowledge in time, and that were written again.',
    watch: 'Repeatedly: NATS answers too slowly, or loses its leader.',
  }),
  wentBack: counter('store_went_back_total', {
    help: 'Times that this process noticed that the store had gone back in time, and refused writes.',
    watch: 'Any: NATS serves an older state than it had acknowledged. See the runbook, “Store that went back in time”.',
  }),
  moved: counter('partition_moves_total', {
    help: 'Partitions that this process took, released to another, or lost.',
    watch:
      '`lost`: its lease was revoked, or another process took what it should not have; `taken` and `released` come with starts and stops.',
    labels: [label('change', 'taken', 'released', 'lost')],
  }),
  loadGivenUp: counter('load_failures_total', {
    help: 'Loads of a partition that failed, so that this process pauses before the next, by cause: unreadable records, or a lost lease.',
    watch: 'Any: see the runbook, “Partition that refuses to load” (`unloadable`) and “Lapsed lease” (`revoked`).',
    labels: [label('cause', 'unloadable', 'revoked')],
  }),
  sealed: counter('journals_sealed_total', {
    help: 'Journals of this process that were sealed while it ran, by whether its lease was still valid.',
    watch:
      '`valid`: any. The fence of a journal was moved under a live member: see the runbook, “Sealed journal”. `lapsed` comes with a lost lease.',
    labels: [label('lease', 'valid', 'lapsed')],
  }),
  hostRefused: counter('host_messages_refused_total', {
    help: 'Refused messages of hosts, by kind: the sender does not hold the enrolled key, or the host was removed.',
    watch:
      'By kind of message. More than a few after an enrolment: see the runbook, “Messages under a wrong host key”.',
    labels: [label('kind')],
  }),
  scrubbed: counter('scrubs_total', {
    help: 'Scrubs of a stream, by outcome: all replicas compared, only some because others were away, or a failure.',
    watch: '`partial` repeatedly: a NATS server is away, or does not catch up.',
    labels: [label('outcome')],
  }),
  trimmed: counter('trimmed_messages_total', {
    help: 'Messages removed from a shared stream: over the budget of their host, tenant or container, or without an owner.',
    watch:
      'By `stream` and owner (`owner`: host, tenant, container, nobody). Any: a host, tenant or container fills the stream; see the runbook, “Shared stream filling up”.',
    labels: [label('stream'), label('owner')],
  }),
};

export interface ActorsMetrics extends Pick<Recorders<typeof actorsMetrics>, 'scrubbed' | 'trimmed'> {
  readonly observer: OwnerOptions['observer'];
}

const readLongest = reading<Map<string, number>>();

export const longestWork = {
  longest: readLongest('gauge', 'longest_work_seconds', {
    help: 'Longest time that work of this kind blocked the event loop since the last scrape.',
    watch: 'Over 0.05: this work should be cut into slices, or the process is short of CPU.',
    labels: [label('work')],
    read: (longest) => {
      const seen = [...longest];
      longest.clear();
      return seen;
    },
  }),
};

export function createMetrics(registry: Registry): ActorsMetrics {
  const { commitSeconds, commitTurns, writesBlocked, scrubbed, trimmed, ...rest } = record(
    registry,
    actorsPrefix,
    actorsMetrics,
  );
  const longest = new Map<string, number>();
  readAtScrapes(registry, actorsPrefix, longestWork, longest);
  const observer: OwnerOptions['observer'] = {
    ...rest,
    worked: (kind, seconds) => {
      if (seconds > (longest.get(kind) ?? 0)) longest.set(kind, seconds);
    },
    commit: (seconds, count) => {
      commitSeconds(seconds);
      commitTurns(count);
    },
    room: (partition, hasRoom) => writesBlocked(partition, hasRoom ? 0 : 1),
  };
  return { observer, scrubbed, trimmed };
}

const readFleet = reading<Fleet>();

export const fleetGauges = {
  hosts: readFleet('gauge', 'hosts', {
    help: 'Hosts in the host directory, by state.',
    watch: 'By `state`: `up`, `unheard` (enrolled, not yet reported), `silent`, `lost`. Any `lost` needs an operator.',
    labels: [label('state')],
    read: (fleet) => {
      const counts = new Map<string, number>();
      for (const { condition } of fleet.hosts()) counts.set(condition, (counts.get(condition) ?? 0) + 1);
      return [...counts];
    },
  }),
  moving: readFleet('gauge', 'moving_containers', {
    help: 'Containers of this process that leave a host that lives: prepared elsewhere, or being stopped there.',
    watch:
      'During a drain as many as its pace allows. Long above 0 without one: `GET` of a host names what is `blocked`.',
    read: (fleet) => fleet.placements.moving(),
  }),
};

export const observeFleet = (registry: Registry, fleet: Fleet): void =>
  readAtScrapes(registry, actorsPrefix, fleetGauges, fleet);

const readManager = reading<PartitionManager>();

export const partitionGauges = {
  partitions: readManager('gauge', 'partitions', {
    help: 'Partitions that this process owns and serves.',
    watch: 'If the sum over all processes is less than the cluster has, some tenants get 503.',
    read: (manager) => [...manager.serving()].length,
  }),
  unserved: readManager('gauge', 'partitions_unserved', {
    help: 'Partitions that no process serves, as this one sees it. If this process could not load one, /readyz says why.',
    watch:
      'Over 0 for longer than a takeover: the tenants of these get 503. See the runbook, “Partition that refuses to load”.',
    read: (manager) => manager.unowned().length,
  }),
  checkpointStalled: readManager('gauge', 'checkpoint_stalled_seconds', {
    help: 'For how long the checkpoint of the partition has not moved although commits wait for it; 0: none waits.',
    watch: 'Over 15: the bucket of this partition takes no checkpoint. See the runbook, “Full journal”.',
    labels: [partition],
    read: (manager) =>
      Array.from(manager.serving(), ({ number, checkpointStalledMs }) => [number, checkpointStalledMs / 1000]),
  }),
  members: readManager('gauge', 'members', {
    help: 'Actors processes that renew their leases, as this one sees it, itself included.',
    watch: 'The number of running actors processes. Fewer than you started, for longer than a takeover: one is down.',
    read: (manager) => manager.membership.live().length,
  }),
  leaseValid: readManager('gauge', 'lease_valid', {
    help: '1 while this process may answer from its memory; 0 while its lease has lapsed.',
    watch:
      '0: the process answers nothing from memory. Normal for a few seconds while the NATS servers elect a leader; longer: see the runbook, “Lapsed lease”.',
    read: (manager) => (manager.membership.lease().isValid() ? 1 : 0),
  }),
};

export const observePartitionManager = (registry: Registry, manager: PartitionManager): void =>
  readAtScrapes(registry, actorsPrefix, partitionGauges, manager);

const readScrub = reading<Scrub>();

export const scrubGauges = {
  divergent: readScrub('gauge', 'replica_divergent_messages', {
    help: 'Messages that the last scrub found missing, extra or different in the replica on that server (a lower bound).',
    watch: 'Over 0: see the runbook, “Divergent replica”.',
    labels: [label('stream'), label('server')],
    read: (scrub) =>
      scrub
        .results()
        .flatMap(({ stream, divergent }) =>
          Array.from(
            divergent,
            ([server, { missing, extra, different }]) => [stream, server, missing + extra + different] as const,
          ),
        ),
  }),
  wholeAt: readScrub('gauge', 'scrub_timestamp_seconds', {
    help: 'When this process last compared all replicas of the stream, seconds since 1970; 0: never.',
    watch: 'Only with several replicas. Hours old: a NATS server is away, or `SCRUB_INTERVAL` is long.',
    labels: [label('stream')],
    read: (scrub) => scrub.results().map(({ stream, wholeAtMs }) => [stream, wholeAtMs / 1000] as const),
  }),
};

export const observeScrub = (registry: Registry, scrub: Scrub): void =>
  readAtScrapes(registry, actorsPrefix, scrubGauges, scrub);
