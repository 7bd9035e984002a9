/**
 * The cluster that the gateway serves. Actors write its record when they create the cluster;
 * without the record there are no partitions.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import type { Answers } from '../../lib/nats/answers.ts';
import { jitter } from '../../lib/time/backoff.ts';
import { retry } from '../../lib/time/retry.ts';
import { readClusterEntry } from '../../lib/nats/cluster-record.ts';
import type { Log } from '../../lib/log.ts';
import { isRestoring, type Cluster } from '../../schemas/records/cluster.ts';
import { subjects } from '../../schemas/wire/subjects.ts';

/** Pause between two reads of the cluster's record. */
export const clusterPollMs = 500;

/** Failed reads of the cluster record that make one log line. */
const clusterLogEveryAttempts = 20;

export interface ClusterWait {
  readonly log: Log;
  /** The cluster to wait for; any other is ignored. */
  readonly expectedId: string | undefined;
  /** Of the connection. */
  readonly answers?: Answers;
}

/** The reason why the gateway can't serve this cluster; `undefined` if it can. */
const faultOf = ({ id }: Cluster, expectedId: string | undefined): string | undefined =>
  expectedId === undefined || id === expectedId
    ? undefined
    : `these servers hold the cluster ${id}, not ${expectedId}; check NATS_URLS and LONGSHORE_CLUSTER_ID`;

/** Waits for the record without a limit; undefined when aborted. */
export async function waitForCluster(
  nc: NatsConnection,
  { log, expectedId, answers }: ClusterWait,
  signal: AbortSignal,
): Promise<Cluster | undefined> {
  const isSaid = (attempt: number): boolean => attempt % clusterLogEveryAttempts === 0;
  const look = async (attempt: number): Promise<Cluster | undefined> => {
    answers?.asked();
    const { entry } = await readClusterEntry(nc, subjects.read('cluster'));
    answers?.heard();
    const cluster = entry === undefined || isRestoring(entry) ? undefined : entry;
    const fault = cluster === undefined ? undefined : faultOf(cluster, expectedId);
    if (fault === undefined && cluster !== undefined) return cluster;
    if (isSaid(attempt) && fault !== undefined) log.error('wrong_cluster', { error: new Error(fault) });
    else if (isSaid(attempt)) log.info('cluster_awaited');
    return undefined;
  };
  return retry(look, {
    pauseMs: () => jitter(clusterPollMs),
    signal,
    onFailure: (error, attempt) => {
      if (isSaid(attempt)) log.info('cluster_awaited', { error });
    },
  });
}
