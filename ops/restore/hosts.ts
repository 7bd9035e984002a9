/**
 * Asks hosts which incarnation they have seen. An agent ignores every epoch below one that it has
 * obeyed, and where JetStream was lost only hosts know what an earlier restore announced: if its
 * clock was ahead, theirs is. Each agent names its epochs whenever it asks what to run.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import { messageDecoder } from '../../lib/decode.ts';
import { sleep } from '../../lib/time/backoff.ts';
import type { HostKey } from '../../schemas/ids.ts';
import { incarnationOfEpoch } from '../../schemas/records/cluster.ts';
import { SyncAsk } from '../../schemas/wire/host.ts';
import { anySender, senderOfSubject, subjects } from '../../schemas/wire/subjects.ts';

/**
 * Time that a restore waits for hosts to say what they have seen, and the interval of its rings.
 */
const restoreHostsMs = 6000;
const restoreHostsRingMs = 1000;

const decodeAsk = messageDecoder(SyncAsk);

export interface HeardHosts {
  /** The restored incarnation must be above it; 0: no host has seen one. */
  readonly incarnation: number;
  /** Hosts that did not ask in time: switched off, or cut off. */
  readonly silent: readonly HostKey[];
  /** Hosts whose incarnation is too far ahead to be believed. */
  readonly implausible: readonly HostKey[];
}

/**
 * Waits until each host has asked, and no longer than `restoreHostsMs`.
 * @param notAfterMs a host that names a later incarnation is not believed
 */
export async function askHosts(nc: NatsConnection, hosts: readonly HostKey[], notAfterMs: number): Promise<HeardHosts> {
  const silent = new Set<string>(hosts);
  const implausible = new Set<HostKey>();
  let incarnation = 0;
  const allHeard = new AbortController();
  const onMessage = (subject: string, data: Uint8Array): void => {
    const host = hosts.find((key) => key === senderOfSubject(subject).host);
    const ask = decodeAsk(data);
    // One that a doorbell of before caused names only some partitions.
    if (host === undefined || ask.partitions !== undefined) return;
    silent.delete(host);
    const seen = Math.max(0, ...Object.values(ask.held).map(([epoch]) => incarnationOfEpoch(epoch)));
    if (seen > notAfterMs) implausible.add(host);
    else incarnation = Math.max(incarnation, seen);
    if (silent.size === 0) allHeard.abort();
  };
  const asks = nc.subscribe(subjects.hostSync(anySender), {
    callback: (error, { subject, data }) => {
      if (error !== null) return;
      try {
        onMessage(subject, data);
      } catch {
        // An agent that this release does not understand is silent.
      }
    },
  });
  try {
    const untilMs = performance.now() + restoreHostsMs;
    while (silent.size > 0 && performance.now() < untilMs) {
      // A doorbell may be lost, as while an agent reconnects.
      for (const host of hosts) if (silent.has(host)) nc.publish(subjects.desired(host, everyPartition));
      await sleep(restoreHostsRingMs, allHeard.signal);
    }
  } finally {
    asks.unsubscribe();
  }
  return { incarnation, silent: hosts.filter((host) => silent.has(host)), implausible: [...implausible] };
}

/** In a doorbell: no partition's number, so that the agent asks about all. */
const everyPartition = -1;
