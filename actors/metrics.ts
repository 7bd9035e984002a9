/** The metrics of an actors process; docs/metrics.md describes every name. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { BudgetsOptions } from './retention/budgets.ts';
import type { Fleet } from './endpoints/fleet.ts';
import type { PartitionManager } from './membership/partition-manager.ts';
import type { OwnerOptions } from './owner.ts';
import type { Scrub, ScrubOptions } from './scrub/scrub.ts';

const prefix = 'longshore_actors_';

export function createObserver(registry: Registry): OwnerOptions['observer'] {
  const registers = [registry];
  const turns = new Counter({
    name: `${prefix}turns_total`,
    help: 'Turns run, by kind of ask.',
    labelNames: ['kind'],
    registers,
  });
  const commitSeconds = new Histogram({
    name: `${prefix}commit_duration_seconds`,
    help: 'Time from the put of a journal entry to its acknowledgement.',
    buckets: [0.0005, 0.001, 0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.25, 0.5, 1, 2],
    registers,
  });
  const commitTurns = new Histogram({
    name: `${prefix}commit_turns`,
    help: 'Turns in one commit.',
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512],
    registers,
  });
  const quarantined = new Gauge({
    name: `${prefix}quarantined_records`,
    help: 'Records that the last load could not read.',
    labelNames: ['partition'],
    registers,
  });
  const uncheckpointed = new Gauge({
    name: `${prefix}uncheckpointed_commits`,
    help: 'Commits of the partition that are in the journal and in no checkpoint yet.',
    labelNames: ['partition'],
    registers,
  });
  const journal = new Gauge({
    name: `${prefix}journal_entries`,
    help: 'Entries of this process’s journal with commits that are in no checkpoint yet.',
    registers,
  });
  const refusing = new Gauge({
    name: `${prefix}writes_refused`,
    help: '1 while the partition refuses writes: its journal is full, or too many turns wait.',
    labelNames: ['partition'],
    registers,
  });
  const parked = new Gauge({
    name: `${prefix}events_parked`,
    help: 'Committed events and lines of the audit that wait in the bucket because the stream EVENTS or AUDIT does not accept them.',
    labelNames: ['partition'],
    registers,
  });
  const loads = new Counter({
    name: `${prefix}loads_total`,
    help: 'Loads of partitions.',
    registers,
  });
  const unknown = new Counter({
    name: `${prefix}writes_unknown_total`,
    help: 'Commits and checkpoints that NATS did not acknowledge in time, and that were written again.',
    registers,
  });
  const moves = new Counter({
    name: `${prefix}partition_moves_total`,
    help: 'Partitions that this process took, released to another, or lost.',
    labelNames: ['how'],
    registers,
  });
  const givenUp = new Counter({
    name: `${prefix}loads_given_up_total`,
    help: 'Loads of a partition that failed, so that this process pauses before the next, by cause: unreadable records, or a lost lease.',
    labelNames: ['cause'],
    registers,
  });
  const sealed = new Counter({
    name: `${prefix}journals_sealed_total`,
    help: 'Journals of this process that were sealed while it ran, by whether its lease was still valid.',
    labelNames: ['lease'],
    registers,
  });
  for (const lease of ['valid', 'lapsed']) sealed.labels(lease).inc(0);
  const refusedSenders = new Counter({
    name: `${prefix}host_senders_refused_total`,
    help: 'Refused messages of hosts, by kind: the sender does not hold the enrolled key, or the host was removed.',
    labelNames: ['message'],
    registers,
  });
  const longest = new Map<string, number>();
  new Gauge({
    name: `${prefix}longest_work_seconds`,
    help: 'Longest time that work of this kind blocked the event loop since the last scrape.',
    labelNames: ['work'],
    registers,
    collect() {
      this.reset();
      for (const [kind, seconds] of longest) this.labels(kind).set(seconds);
      longest.clear();
    },
  });
  return {
    moved: (how) => moves.labels(how).inc(),
    loadGivenUp: (cause) => givenUp.labels(cause).inc(),
    sealed: (lease) => sealed.labels(lease).inc(),
    worked: (kind, seconds) => {
      if (seconds > (longest.get(kind) ?? 0)) longest.set(kind, seconds);
    },
    hostRefused: (message) => refusedSenders.labels(message).inc(),
    turn: (kind) => turns.labels(kind).inc(),
    commit: (seconds, count) => {
      commitSeconds.observe(seconds);
      commitTurns.observe(count);
    },
    quarantined: (partition, count) => quarantined.labels(String(partition)).set(count),
    uncheckpointed: (partition, commits) => uncheckpointed.labels(String(partition)).set(commits),
    journal: (entries) => journal.set(entries),
    room: (partition, hasRoom) => refusing.labels(String(partition)).set(hasRoom ? 0 : 1),
    parked: (partition, events) => parked.labels(String(partition)).set(events),
    load: () => loads.inc(),
    unknown: () => unknown.inc(),
  };
}

export function observeFleet(registry: Registry, fleet: Fleet): void {
  new Gauge({
    name: `${prefix}hosts`,
    help: 'Hosts in the host directory, by standing.',
    labelNames: ['standing'],
    registers: [registry],
    collect() {
      this.reset();
      for (const { standing } of fleet.hosts()) this.labels(standing).inc();
    },
  });
  new Gauge({
    name: `${prefix}moving_containers`,
    help: 'Containers of this process that leave a host that lives: prepared elsewhere, or being stopped there.',
    registers: [registry],
    collect() {
      this.set(fleet.placements.moving());
    },
  });
}

export function observePartitionManager(registry: Registry, manager: PartitionManager): void {
  const registers = [registry];
  new Gauge({
    name: `${prefix}partitions`,
    help: 'Partitions that this process owns and serves.',
    registers,
    collect() {
      this.set([...manager.serving()].length);
    },
  });
  new Gauge({
    name: `${prefix}partitions_unserved`,
    help: 'Partitions that no process serves, as this one sees it. If this process could not load one, /readyz says why.',
    registers,
    collect() {
      this.set(manager.unowned().length);
    },
  });
  new Gauge({
    name: `${prefix}checkpoint_stalled_seconds`,
    help: 'For how long the checkpoint of the partition has not moved although commits wait for it; 0: none waits.',
    labelNames: ['partition'],
    registers,
    collect() {
      this.reset();
      for (const { number, checkpointStalledMs } of manager.serving())
        this.labels(String(number)).set(checkpointStalledMs / 1000);
    },
  });
  new Gauge({
    name: `${prefix}members`,
    help: 'Actors processes that renew their leases, as this one sees it, itself included.',
    registers,
    collect() {
      this.set(manager.membership.live().length);
    },
  });
  new Gauge({
    name: `${prefix}lease_valid`,
    help: '1 while this process may answer from its memory; 0 while its lease has lapsed.',
    registers,
    collect() {
      this.set(manager.membership.lease().isValid() ? 1 : 0);
    },
  });
}

export function observeScrub(registry: Registry, { results }: Scrub): void {
  const registers = [registry];
  new Gauge({
    name: `${prefix}replica_divergent_messages`,
    help: 'Messages that the last scrub found missing, extra or different in the replica on that server (a lower bound).',
    labelNames: ['stream', 'server'],
    registers,
    collect() {
      this.reset();
      for (const { stream, divergent } of results())
        for (const [server, { missing, extra, different }] of divergent)
          this.labels(stream, server).set(missing + extra + different);
    },
  });
  new Gauge({
    name: `${prefix}scrub_timestamp_seconds`,
    help: 'When this process last compared all replicas of the stream, seconds since 1970; 0: never.',
    labelNames: ['stream'],
    registers,
    collect() {
      this.reset();
      for (const { stream, wholeAtMs } of results()) this.labels(stream).set(wholeAtMs / 1000);
    },
  });
}

export function countScrubs(registry: Registry): ScrubOptions['onScrubbed'] {
  const scrubs = new Counter({
    name: `${prefix}scrubs_total`,
    help: 'Scrubs of a stream, by outcome: all replicas compared, only some because others were away, or a failure.',
    labelNames: ['outcome'],
    registers: [registry],
  });
  return (outcome) => scrubs.labels(outcome).inc();
}

export function countTrims(registry: Registry): BudgetsOptions['onTrimmed'] {
  const trimmed = new Counter({
    name: `${prefix}trimmed_messages_total`,
    help: 'Messages removed from a shared stream: over the budget of their host, tenant or container, or without an owner.',
    labelNames: ['stream', 'of'],
    registers: [registry],
  });
  return (stream, of, messages) => trimmed.labels(stream, of).inc(messages);
}
