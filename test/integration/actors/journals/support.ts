/**
 * Common parts of tests of journals in trouble: the programs on real NATS servers, and what a
 * client and an operator see of them.
 */
import { randomUUID } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import { headers, type NatsConnection } from '@nats-io/transport-node';
import type { Test } from 'tap';
import { createJournalStore, journalBucketOf } from '../../../../actors/runtime/store/jetstream-store.ts';
import { startNats, type Nats } from '../../../../dev/servers/nats.ts';
import { startNatsCluster, type NatsCluster } from '../../../../dev/servers/nats-cluster.ts';
import { limits } from '../../../../schemas/limits.ts';
import type { MemberId } from '../../../../schemas/ids.ts';
import { bucketPrefix, bucketStream } from '../../../../schemas/records/buckets.ts';
import { partitionOf } from '../../../../schemas/wire/subjects.ts';
import { clientFor, type Client, type Issuer } from '../../../e2e/support/client.ts';
import {
  connectTo,
  startActors as startProcess,
  startPrograms,
  type NatsAccess,
  type Running,
} from '../../../e2e/support/programs.ts';
import { temporaryFolder } from '../../../support/folder.ts';
import { until } from '../../../support/until.ts';

/** Deadline of a request at a gateway, after which the gateway itself refuses it. */
const requestDeadlineMs = 2_000;
const manyContainers = 100_000;

export interface Actors {
  readonly program: Running;
  metrics(): Promise<Metrics>;
  /** Answer of `/readyz`. */
  readiness(): Promise<{ readonly isReady: boolean; readonly text: string }>;
  /** Events of its log of this name, oldest first. */
  logged(event: string): readonly LogEvent[];
  /** The member that it was when it first served, after its last start. */
  member(): MemberId;
}

export type LogEvent = Readonly<Record<string, unknown>>;

/** A scrape. */
export interface Metrics {
  readonly text: string;
  /** The sum over all series whose labels contain this text; `undefined` if there are none. */
  value(name: string, label?: string): number | undefined;
  /** The partitions that the process serves. */
  readonly partitions: readonly number[];
}

export function metricsIn(text: string): Metrics {
  const samples = [...text.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)].map(([, name = '', labels = '', value]) => ({
    name,
    labels,
    value: Number(value),
  }));
  return {
    text,
    value: (name, label = '') => {
      const found = samples.filter((sample) => sample.name === name && sample.labels.includes(label));
      return found.length === 0 ? undefined : found.reduce((sum, { value }) => sum + value, 0);
    },
    partitions: samples
      .filter(({ name }) => name === 'longshore_actors_checkpoint_stalled_seconds')
      .map(({ labels }) => Number(/partition="(\d+)"/.exec(labels)?.[1])),
  };
}

const getText = async (url: string): Promise<{ readonly ok: boolean; readonly text: string }> => {
  const response = await fetch(url, { signal: AbortSignal.timeout(5_000) });
  return { ok: response.ok, text: await response.text() };
};

/** An actors process; it need not come to serve. */
export async function startActors(
  t: Test,
  folder: string,
  nats: NatsAccess,
  settings: Record<string, string>,
): Promise<Actors> {
  const { program, metricsUrl } = await startProcess(t, { folder }, nats, settings, '/healthz');
  const logged = (event: string): LogEvent[] =>
    readFileSync(join(folder, 'actors.log'), 'utf8')
      .split('\n')
      .filter((line) => line.includes(`"event":"${event}"`))
      .map((line) => JSON.parse(line) as LogEvent);
  return {
    program,
    logged,
    metrics: async () => metricsIn((await getText(metricsUrl)).text),
    readiness: async () => {
      const { ok, text } = await getText(new URL('/readyz', metricsUrl).href);
      return { isReady: ok, text };
    },
    member: () => String(logged('serving').at(-1)?.['member']) as MemberId,
  };
}

export interface GroundOptions {
  readonly servers: 1 | 3;
  readonly partitions: number;
  readonly actors: number;
  readonly settings?: Record<string, string>;
  /** Additional lines of the configuration of one server; asked for at each start. */
  readonly natsLines?: () => readonly string[];
}

export interface Ground {
  readonly nats: Nats | NatsCluster;
  /** All rights in the control plane's account. */
  readonly nc: NatsConnection;
  readonly actors: readonly Actors[];
  /** A client of the first tenant of this partition, or of another. */
  clientOn(partition: number, which?: number): Promise<Client>;
}

/** Starts one NATS server, or three, with actors processes that serve and one gateway. */
export async function startGround(t: Test, options: GroundOptions): Promise<Ground> {
  const { servers, partitions, natsLines: more = () => [] } = options;
  const folder = temporaryFolder(t, 'longshore-journals-');
  const dir = join(folder, 'nats');
  const nats = servers === 3 ? await startNatsCluster({ dir }) : await startNats({ dir, more });
  t.teardown(() => nats.stop());
  const access: NatsAccess = 'url' in nats ? { ...nats, urls: [nats.url] } : nats;
  const settings = {
    LONGSHORE_PARTITIONS: String(partitions),
    LONGSHORE_REPLICAS: String(servers),
    ...options.settings,
  };
  const actors: Actors[] = [];
  for (let copy = 0; copy < options.actors; copy++) {
    actors.push(await startActors(t, join(folder, `actors-${copy}`), access, settings));
    await untilReady(actors);
  }
  const gateway = {
    REQUEST_DEADLINE: `${requestDeadlineMs}ms`,
    RATE_LIMIT_TENANT_PER_SECOND: '1000000',
    RATE_LIMIT_TENANT_BURST: '1000000',
  };
  const copies = { actors: 0, gateways: 1 };
  const { issuer, gateways } = await startPrograms(t, folder, access, { actors: {}, gateway }, copies);
  const nc = await connectTo(access);
  t.teardown(() => nc.close());
  return { nats, nc, actors, clientOn: clientsOf(gateways[0]!.baseUrl, issuer, partitions) };
}

export const untilReady = async (actors: readonly Actors[]): Promise<void> =>
  void (await until('all partitions are served', async () => {
    const all = await Promise.all(actors.map(async (each) => each.readiness()));
    return all.every(({ isReady }) => isReady);
  }));

function clientsOf(baseUrl: string, issuer: Issuer, partitions: number): Ground['clientOn'] {
  const clients = new Map<string, Promise<Client>>();
  const tenantOf = (partition: number, which: number): string => {
    let before = 0;
    for (let number = 0; ; number++) {
      if (partitionOf(`t${number}`, partitions) === partition && before++ === which) return `t${number}`;
    }
  };
  const make = async (tenant: string): Promise<Client> => {
    const operator = await clientFor(baseUrl, issuer, 'ops', 'operator');
    const caps = { containers: manyContainers, cpu_millis: null, mem_bytes: null };
    const { status, text } = await operator.call('PUT', `/api/v2/operator/tenants/${tenant}`, { caps });
    if (status !== 200) throw new Error(`the caps of ${tenant}: ${status} ${text}`);
    return clientFor(baseUrl, issuer, tenant);
  };
  return async (partition, which = 0) => {
    const tenant = tenantOf(partition, which);
    const client = clients.get(tenant) ?? make(tenant);
    clients.set(tenant, client);
    return client;
  };
}

const spec = { registry: 'registry.test', repository: 'longshore/demo', cpu_limit: '0.1', mem_limit: '16m' };

/** Creates of one tenant, and their comparison with later reads. */
export class Work {
  readonly client: Client;
  readonly #prefix: string;
  /** Names whose creates were acknowledged. */
  readonly acknowledged = new Set<string>();
  /** Names whose creates may have been executed. */
  readonly unknown = new Set<string>();
  #made = 0;

  constructor(client: Client, prefix = 'c') {
    this.client = client;
    this.#prefix = prefix;
  }

  /** @returns the HTTP status of one more create; 0 if the connection broke */
  async create(more: object = {}): Promise<number> {
    const name = `${this.#prefix}${this.#made++}`;
    const { status } = await this.client.create({ name, ...spec, ...more }).catch(() => ({ status: 0 }));
    if (status === 201) this.acknowledged.add(name);
    else if (status !== 503 && status !== 429) this.unknown.add(name);
    return status;
  }

  /** Acknowledged names that a read does not show, and shown names that were refused. */
  async differences(): Promise<{ readonly lost: readonly string[]; readonly undone: readonly string[] }> {
    const shown = new Set(await this.#names());
    return {
      lost: [...this.acknowledged].filter((name) => !shown.has(name)),
      undone: [...shown].filter((name) => !this.acknowledged.has(name) && !this.unknown.has(name)),
    };
  }

  async #names(): Promise<string[]> {
    const names: string[] = [];
    for (let cursor: string | null = null; ;) {
      const page: string = cursor === null ? '' : `&cursor=${encodeURIComponent(cursor)}`;
      const { status, body } = await this.client.call<Page>('GET', `/api/v2/compute?limit=100${page}`);
      if (status !== 200) throw new Error(`a list: ${status}`);
      names.push(...body.data.map(({ name }) => name));
      cursor = body.next_cursor ?? null;
      if (cursor === null) return names;
    }
  }
}

interface Page {
  readonly data: readonly { readonly name: string }[];
  readonly next_cursor?: string | null;
}

export const nothingLost = { lost: [], undone: [] };

/** Bounds the bytes of a bucket by what it has, so that it refuses all more; `lift` ends it. */
export async function fillBucket(nc: NatsConnection, bucket: string): Promise<{ lift(): Promise<void> }> {
  const manager = await jetstreamManager(nc, { timeout: limits.jetstreamSetupMs });
  const stream = bucketStream(bucket);
  const { state } = await manager.streams.info(stream);
  await manager.streams.update(stream, { max_bytes: state.bytes });
  return { lift: async () => void (await manager.streams.update(stream, { max_bytes: -1 })) };
}

export const journalOf = (nc: NatsConnection, member: MemberId) => createJournalStore(nc, member, randomUUID);

/** All keys of the journal, as if they had never been. */
export async function removeJournal(nc: NatsConnection, member: MemberId): Promise<void> {
  const manager = await jetstreamManager(nc, { timeout: limits.jetstreamSetupMs });
  const bucket = journalBucketOf(member);
  await manager.streams.purge(bucketStream(bucket), { filter: `${bucketPrefix(bucket)}${member}.>` });
}

/** As `nats kv del journal-<k> <member>.epoch` does. */
export async function giveUpJournal(nc: NatsConnection, member: MemberId): Promise<void> {
  const deletion = headers();
  deletion.set('KV-Operation', 'DEL');
  const key = `${bucketPrefix(journalBucketOf(member))}${member}.epoch`;
  await nc.request(key, '', { headers: deletion, timeout: 5_000 });
}

/** The sequence of the newest entry of the journal, and the revision of its fence. */
export async function readJournal(nc: NatsConnection, member: MemberId): Promise<{ newest: number; fence: number }> {
  const store = journalOf(nc, member);
  const { revision } = await store.readEpoch();
  const entries = (await store.load(revision)).filter(({ key }) => key.startsWith('entry.'));
  return { newest: Math.max(0, ...entries.map((entry) => entry.revision)), fence: revision };
}
