/** What is measured of an actors process; docs/metrics.md describes every name. */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';
import type { Fleet } from './fleet.ts';
import type { PartitionObserver } from './runtime/partition.ts';

const prefix = 'longshore_actors_';

export function createObserver(registry: Registry): PartitionObserver {
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
  const reloads = new Counter({
    name: `${prefix}loads_total`,
    help: 'Loads of a partition, by cause.',
    labelNames: ['cause'],
    registers,
  });
  return {
    turn: (kind) => turns.labels(kind).inc(),
    commit: (seconds, count) => {
      commitSeconds.observe(seconds);
      commitTurns.observe(count);
    },
    quarantined: (partition, count) => quarantined.labels(String(partition)).set(count),
    journal: (partition, entries) => journal.labels(String(partition)).set(entries),
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

export function observePartitions(registry: Registry, serving: () => number): void {
  new Gauge({
    name: `${prefix}partitions`,
    help: 'Partitions that this process owns and serves.',
    registers: [registry],
    collect() {
      this.set(serving());
    },
  });
}
