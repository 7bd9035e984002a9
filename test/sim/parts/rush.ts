/**
 * A stream is away, one tenant asks without end meanwhile, and another of its partition must not
 * notice. All else is calm.
 */
import { sleep } from '../../../lib/time/backoff.ts';
import type { ContainerId, OperationId, TenantId } from '../../../schemas/ids.ts';
import type { Question } from '../../../lib/rpc/partition-client.ts';
import { bucketStream, buckets, journalBuckets, streams } from '../../../schemas/records/buckets.ts';
import { partitionOf } from '../../../schemas/wire/subjects.ts';
import type { Random } from '../../actors/support/random.ts';
import type { Request, Result } from '../../faults/check/history.ts';
import type { Nats } from '../world/nats.ts';
import { causeOf } from './audit.ts';
import type { Gateway } from './gateway.ts';

const awayMs = 3_000;
/** Less than the patience of a client. */
const stallMs = 1_500;
/** More than may wait of all tenants. */
const readsAtOnce = 150;
/** Few: what is under way counts for no share yet. */
const lanes = 4;

export interface RushOptions {
  readonly nats: Nats;
  readonly random: Random;
  readonly gateway: Gateway;
  readonly partitions: number;
  readonly tenants: readonly TenantId[];
  readonly newToken: () => string;
  /** A request that the history has. */
  readonly ask: (tenant: TenantId, request: Request) => Promise<Result>;
  /** A container of a tenant that is not being removed. */
  readonly containerOf: (tenant: TenantId) => string | undefined;
}

/** @returns faults that the other tenant noticed */
export async function rush(options: RushOptions): Promise<string[]> {
  const { partitions, random, tenants } = options;
  const [greedy = '' as TenantId, ...others] = tenants;
  const polite = others.find((tenant) => partitionOf(tenant, partitions) === partitionOf(greedy, partitions));
  const own = polite === undefined ? undefined : options.containerOf(polite);
  if (polite === undefined || own === undefined) return [];
  const [away, ms, asking] = random.once(2)
    ? ([[streams.audit.name], awayMs, askForNothing] as const)
    : ([journals, stallMs, readWhatWaits] as const);
  const { world, jetstream } = options.nats;
  const endMs = world.nowMs + ms;
  const isOver = (): boolean => world.nowMs >= endMs;
  // Silence is noticed only after a time, in which more waits than these small limits allow.
  for (const stream of away) jetstream.leave(stream, endMs, stream === streams.audit.name ? 'refusing' : 'silent');
  const results: Result[] = [];
  const live = async (): Promise<void> => {
    while (!isOver()) {
      await sleep(200);
      // At least one of the two changes it, and the read waits for that.
      const writes = (['stop', 'start'] as const).map((kind) => options.ask(polite, { kind, id: own }));
      await sleep(20);
      results.push(...(await Promise.all([...writes, options.ask(polite, { kind: 'get', id: own })])));
      await sleep(600);
    }
  };
  await Promise.all([asking(options, greedy, isOver), live()]);
  const bad = results.flatMap((result) => {
    if (result.kind === 'unknown') return [result.why];
    return result.kind === 'refused' && isBusy.has(result.code) ? [result.code] : [];
  });
  if (bad.length === 0) return [];
  return [`while ${away.join()} was away and ${greedy} asked without end, ${polite} got ${bad.join()}`];
}

const isBusy: ReadonlySet<string> = new Set(['unavailable', 'rate_limited']);

const journals = Array.from({ length: journalBuckets }, (_, number) => bucketStream(buckets.journal.bucket(number)));

/** Sends writes that are all refused, and each leave a line in the audit. */
async function askForNothing(
  { gateway, newToken, nats: { world } }: RushOptions,
  tenant: TenantId,
  isOver: () => boolean,
): Promise<void> {
  const lane = async (): Promise<void> => {
    while (!isOver()) {
      const asker = { rid: newToken(), op: newToken() as OperationId, cause: causeOf(tenant, 'start') };
      await gateway.ask('write', { type: 'container.start', tenant, id: newToken() as ContainerId, ...asker });
      await sleep(20);
    }
  };
  await world.spawn(gateway.process, async () => Promise.all(Array.from({ length: lanes }, lane)));
}

/** Reads of what is not committed yet, many at once. */
async function readWhatWaits(options: RushOptions, tenant: TenantId): Promise<void> {
  const { gateway, newToken, nats } = options;
  const id = options.containerOf(tenant);
  const changing = id === undefined ? [] : [options.ask(tenant, { kind: 'delete', id })];
  await sleep(50);
  const list = (): Question => ({ type: 'container.list', tenant, limit: 100, before: null, rid: newToken() });
  const reading = async () => Promise.all(Array.from({ length: readsAtOnce }, () => gateway.ask('read', list())));
  await Promise.all([...changing, nats.world.spawn(gateway.process, reading)]);
}
