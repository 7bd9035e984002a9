/** What is measured of an actors process; docs/metrics.md describes every name. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { BudgetsOptions } from './retention/budgets.ts';
import type { Fleet } from './endpoints/fleet.ts';
import type { PartitionManager, PartitionManagerObserver } from './membership/partition-manager.ts';
import type { HostObserver } from './owner.ts';
import type { PartitionObserver } from './runtime/partition.ts';
import type { Scrub, ScrubOptions } from './scrub/scrub.ts';

const prefix = 'longshore_actors_';

export function createObserver(registry: Registry): PartitionObserver & PartitionManagerObserver & HostObserver {
  const registers = [registry];
  const turns = new Counter({
    name: `${prefix}turns_total`,
    help: 'Turns run, by what was asked.',
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
    help: 'Turns whose answers one commit let go.',
    buckets: [1, 2, 4, 8, 16, 32, 64, 128, 256, 512],
    registers,
  });
  const quarantined = new Gauge({
    name: `${prefix}quarantined_records`,
    help: 'Records that could not be read at the last load.',
    labelNames: ['partition'],
    registers,
  });
  const journal = new Gauge({
    name: `${prefix}journal_entries`,
    help: 'Journal entries above the checkpoint mark; a full ring refuses writes.',
    labelNames: ['partition'],
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
    help: 'Committed events that wait in the bucket, for the stream EVENTS does not take them.',
    labelNames: ['partition'],
    registers,
  });
  const reloads = new Counter({
    name: `${prefix}loads_total`,
    help: 'Loads of a partition, by cause.',
    labelNames: ['cause'],
    registers,
  });
  const moves = new Counter({
    name: `${prefix}partition_moves_total`,
    help: 'Partitions that this process has taken, released to another, or lost.',
    labelNames: ['how'],
    registers,
  });
  const givenUp = new Counter({
    name: `${prefix}loads_given_up_total`,
    help: 'Loads of a partition after which this process rests, by cause: its records could not be read, or the lease was lost.',
    labelNames: ['cause'],
    registers,
  });
  const refusedSenders = new Counter({
    name: `${prefix}host_senders_refused_total`,
    help: 'Messages of hosts, by kind, whose sender does not hold the key that is enrolled, or whose host was removed.',
    labelNames: ['message'],
    registers,
  });
  const longest = new Map<string, number>();
  new Gauge({
    name: `${prefix}longest_work_seconds`,
    help: 'Longest time since the last scrape that work of this kind kept the event loop.',
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
    journal: (partition, entries) => journal.labels(String(partition)).set(entries),
    room: (partition, hasRoom) => refusing.labels(String(partition)).set(hasRoom ? 0 : 1),
    parked: (partition, events) => parked.labels(String(partition)).set(events),
    reload: (cause) => reloads.labels(cause).inc(),
  };
}

export function observeFleet(registry: Registry, fleet: Fleet): void {
  new Gauge({
    name: `${prefix}hosts`,
    help: 'Hosts in the directory, by standing.',
    labelNames: ['standing'],
    registers: [registry],
    collect() {
      this.reset();
      for (const { standing } of fleet.hosts()) this.labels(standing).inc();
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
    help: 'Partitions that no process serves, as this one sees it; /readyz says why, where this process could not load one.',
    registers,
    collect() {
      this.set(manager.unowned().length);
    },
  });
  new Gauge({
    name: `${prefix}members`,
    help: 'Actors processes that this one sees renew their leases, itself too.',
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
    help: 'Messages that the last scrub found missing, extra or different in the replica on that server; at least so many.',
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
    help: 'When all replicas of the stream were last compared, seconds since 1970; 0: never by this process.',
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
    help: 'Streams whose replicas were compared: the whole, in part since one was away, or not.',
    labelNames: ['outcome'],
    registers: [registry],
  });
  return (outcome) => scrubs.labels(outcome).inc();
}

export function countTrims(registry: Registry): BudgetsOptions['onTrimmed'] {
  const trimmed = new Counter({
    name: `${prefix}trimmed_messages_total`,
    help: 'Messages over the budget of their host, tenant or container, or of nobody, that were removed from a shared stream.',
    labelNames: ['stream', 'of'],
    registers: [registry],
  });
  return (stream, of, messages) => trimmed.labels(stream, of).inc(messages);
}
