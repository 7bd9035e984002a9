/** The dashboards of what works inside: actors with their journals, and hosts with their agents. */
import type { Board, Panel, Query, Unit } from './grafana.ts';
import { chosen, count, graph, percentile, percentiles, rateBy, rateOf } from './queries.ts';

/** A gauge of each process. */
const gauge = (metric: string, legend = '{{instance}}', filter = chosen): Query => ({
  expr: `${metric}{${filter}}`,
  legend,
});

/** The time since a timestamp, which is 0 until there is one. */
const age = (metric: string, legend: string): Query => ({
  expr: `time() - (${metric}{${chosen}} > 0)`,
  legend,
});

/** A gauge of each partition, of those where it is above 0. */
const partitions = (metric: string, title: string, what: string, unit: Unit): Panel =>
  graph(title, what, unit, {
    expr: `topk(16, max by (partition) (${metric}{${chosen}}))`,
    legend: 'partition {{partition}}',
  });

const commits = 'longshore_actors_commit_duration_seconds';

export const actors: Board = {
  file: 'actors',
  title: 'Longshore: actors and journals',
  what: 'Who owns which partitions, how long a commit takes, and how far checkpoints are behind the journal.',
  variables: [{ name: 'instance', metric: 'longshore_actors_partitions' }],
  panels: [
    count('Members', 'Actors processes that renew their leases.', 'max(longshore_actors_members)'),
    count('Leases valid', 'Processes that may answer from memory.', 'sum(longshore_actors_lease_valid)'),
    count('Partitions without owner', 'Their tenants get 503.', 'max(longshore_actors_partitions_unserved)'),
    count('Quarantined records', 'Records that cannot be read.', 'sum(longshore_actors_quarantined_records)'),
    graph(
      'Time of a commit',
      'The disk under JetStream. Over 0.25 s every write is slow.',
      's',
      ...percentiles(commits),
    ),
    graph(
      'Commits and turns',
      'Turns in one commit rise with the load.',
      'ops',
      rateOf(`${commits}_count`, 'commits'),
      rateOf('longshore_actors_turns_total', 'turns'),
    ),
    graph('Turns by kind', 'What owners are asked.', 'ops', rateBy('longshore_actors_turns_total', 'kind')),
    graph(
      'Entries of the journal in no checkpoint',
      'Steadily over 1,200 of 2,048: checkpoints fall behind. From 1,536 on, commits slow down.',
      'short',
      gauge('longshore_actors_journal_entries'),
    ),
    partitions(
      'longshore_actors_uncheckpointed_commits',
      'Commits in no checkpoint',
      'Rises steadily for one partition: its checkpoint does not get through.',
      'short',
    ),
    partitions(
      'longshore_actors_checkpoint_stalled_seconds',
      'Stalled checkpoints',
      'Over 15 s: the bucket of the partition takes no writes.',
      's',
    ),
    partitions(
      'longshore_actors_writes_blocked',
      'Partitions that refuse writes',
      'Their tenants get 503; reads work.',
      'none',
    ),
    partitions(
      'longshore_actors_events_parked',
      'Events that wait for their stream',
      'The stream EVENTS takes none.',
      'short',
    ),
    graph(
      'Writes without an answer',
      'Repeatedly: NATS answers too slowly, or loses its leader.',
      'ops',
      rateOf('longshore_actors_writes_unknown_total', 'written again'),
    ),
    graph(
      'Partitions of each process',
      'Together as many as the cluster has.',
      'short',
      gauge('longshore_actors_partitions'),
    ),
    graph(
      'Moves and loads of partitions',
      'A lost one was taken by another process, or its lease was revoked.',
      'ops',
      rateBy('longshore_actors_partition_moves_total', 'change'),
      rateOf('longshore_actors_loads_total', 'loads'),
      rateBy('longshore_actors_load_failures_total', 'cause'),
    ),
    graph(
      'Sealed journals',
      'With a valid lease: a fault.',
      'ops',
      rateBy('longshore_actors_journals_sealed_total', 'lease'),
    ),
    graph(
      'Stores that went back in time',
      'Any: see the runbook, “Store that went back in time”.',
      'ops',
      rateOf('longshore_actors_store_went_back_total', 'noticed'),
    ),
    graph('Longest work', 'Over 0.05 s: this work blocks the process.', 's', {
      expr: `max by (work) (longshore_actors_longest_work_seconds{${chosen}})`,
      legend: '{{work}}',
    }),
    graph('Replicas that differ', 'Any: see the runbook, “Divergent replica”.', 'short', {
      expr: `max by (stream, server) (longshore_actors_replica_divergent_messages{${chosen}})`,
      legend: '{{stream}} {{server}}',
    }),
    graph('Scrubs', 'Comparisons of replicas, by outcome.', 'ops', rateBy('longshore_actors_scrubs_total', 'outcome')),
    graph(
      'Messages removed from shared streams',
      'They were over the share of a host, a tenant or a container.',
      'ops',
      rateBy('longshore_actors_trimmed_messages_total', 'stream, owner'),
    ),
    graph(
      'Containers on the move',
      'During a drain as many as its pace allows.',
      'short',
      gauge('longshore_actors_moving_containers'),
    ),
    graph(
      'Messages under a wrong host key',
      'The sender does not hold the enrolled key.',
      'ops',
      rateBy('longshore_actors_host_messages_refused_total', 'kind'),
    ),
  ],
};

export const hosts: Board = {
  file: 'hosts',
  title: 'Longshore: hosts and agents',
  what: 'Which hosts are sound, what their containers do, and what their engines take.',
  variables: [{ name: 'instance', metric: 'longshore_agent_engine_up' }],
  panels: [
    count('Hosts up', 'Hosts whose agents report.', 'max(longshore_actors_hosts{state="up"}) or vector(0)'),
    count(
      'Hosts lost',
      'Hosts that were silent for too long.',
      'max(longshore_actors_hosts{state="lost"}) or vector(0)',
    ),
    count('Engines down', 'Engines that do not answer.', 'count(longshore_agent_engine_up == 0) or vector(0)'),
    count('Orphans held', 'Containers that wait for an operator.', 'sum(longshore_agent_orphans_held)'),
    graph('Containers by status', 'Many failed at once on one host: a fault of the host.', 'short', {
      expr: `sum by (status) (longshore_agent_containers{${chosen}})`,
      legend: '{{status}}',
    }),
    graph('Faults of hosts', '1: see the runbook, “Host faults”.', 'none', {
      expr: `max by (instance, kind) (longshore_agent_fault{${chosen}}) > 0 or vector(0)`,
      legend: '{{instance}} {{kind}}',
    }),
    graph(
      'Sessions with the control plane',
      '0 for a minute after a start: silent or lost.',
      'none',
      gauge('longshore_agent_session_held'),
    ),
    graph(
      'Age of the last sync and of the list of containers',
      'Over 120 s, or no line: the host works from old knowledge.',
      's',
      age('longshore_agent_sync_timestamp_seconds', '{{instance}} sync'),
      age('longshore_agent_inventory_timestamp_seconds', '{{instance}} list'),
    ),
    graph('Steps', 'What agents do, by step and result.', 'ops', rateBy('longshore_agent_steps_total', 'step, result')),
    graph(
      'Restarts',
      'Of containers that ended by themselves.',
      'ops',
      rateBy('longshore_agent_restarts_total', 'instance'),
    ),
    graph(
      'Calls of the engine',
      'The 99th percentile of each call. A slow engine makes everything on its host slow.',
      's',
      percentile('longshore_agent_engine_call_duration_seconds', 99, 'call'),
    ),
    graph(
      'Pulls',
      'Queued: the engine fetches too few layers at a time.',
      'short',
      { expr: `sum by (state) (longshore_agent_pulls{${chosen}})`, legend: '{{state}}' },
      rateBy('longshore_agent_pulls_total', 'result'),
    ),
    graph(
      'Disk of the engine',
      'Over 0.85 unused images go; over 0.9 the host has a fault.',
      'percentunit',
      gauge('longshore_agent_disk_used_ratio'),
    ),
    graph(
      'Evictions and removed images',
      'Containers over their disk limit, and names of unused images.',
      'ops',
      rateOf('longshore_agent_disk_limit_stops_total', 'containers'),
      rateOf('longshore_agent_images_removed_total', 'images'),
    ),
    graph(
      'Log lines',
      'Lines that the control plane has.',
      'ops',
      rateBy('longshore_agent_log_lines_total', 'instance'),
    ),
    graph(
      'Lost and delayed log lines',
      'Gaps by cause, lines dropped, and blocks that waited for a rate.',
      'ops',
      rateBy('longshore_agent_log_gaps_total', 'cause'),
      rateOf('longshore_agent_log_lines_dropped_total', 'dropped lines'),
      rateBy('longshore_agent_log_blocks_throttled_total', 'scope'),
    ),
    graph(
      'Ports free',
      'Of PUBLISH_PORTS; nothing where they are unknown.',
      'short',
      gauge('longshore_agent_ports_free'),
    ),
    graph('Sandboxes', 'Ready ones stay 0: the engine makes none.', 'short', {
      expr: `sum by (state) (longshore_agent_sandboxes{${chosen}})`,
      legend: '{{state}}',
    }),
    graph(
      'Refused packets of containers',
      'By where they went to; and rules that had to be set again.',
      'ops',
      rateBy('longshore_agent_firewall_denied_packets_total', 'destination'),
      rateOf('longshore_agent_firewall_repairs_total', 'repairs'),
    ),
    graph(
      'Health checks',
      'Over the network, by result.',
      'ops',
      rateBy('longshore_agent_health_checks_total', 'result'),
    ),
    graph('Sessions', 'Such as an exec, by kind.', 'ops', rateBy('longshore_agent_tunnels_opened_total', 'kind'), {
      expr: `sum(longshore_agent_tunnels{${chosen}})`,
      legend: 'open',
    }),
    graph('Time until credentials expire', 'Less than a week: the agent could not renew them.', 's', {
      expr: `longshore_agent_credentials_expiry_timestamp_seconds{${chosen}} - time()`,
      legend: '{{instance}}',
    }),
  ],
};
