/** Three servers, with damage to the disk of one: the scrub names that one, and no other. */
import { readdirSync, readFileSync, rmSync, truncateSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { headers, type NatsConnection } from '@nats-io/transport-node';
import t, { type Test } from 'tap';
import { joinCluster } from '../../../../actors/cluster.ts';
import { createScrub, type Scrubbed } from '../../../../actors/scrub/scrub.ts';
import { scrubStream } from '../../../../actors/scrub/scrub-stream.ts';
import { startNatsCluster, type NatsCluster, type NatsNode } from '../../../../dev/servers/nats-cluster.ts';
import { sleep } from '../../../../lib/time/backoff.ts';
import { systemClock } from '../../../../lib/time/clock.ts';
import { createLog } from '../../../../lib/log.ts';
import { connectNats, credentialsFile } from '../../../../lib/nats/connection.ts';
import { temporaryFolder } from '../../../support/folder.ts';
import { until } from '../../../support/until.ts';

const stream = 'KV_state-1';
const subject = (key: string): string => `$KV.state-1.${key}`;
/** Size of a message's data, like most records. */
const filler = 'x'.repeat(300);
/** Enough for several pages. */
const keyCount = 600;
const confirmMs = 1_500;
const roundsMax = 5;

const log = createLog('test', 'silent');

async function start(t: Test): Promise<{ cluster: NatsCluster; nc: NatsConnection }> {
  const cluster = await startNatsCluster({ dir: temporaryFolder(t) });
  t.teardown(() => cluster.stop());
  const nc = await connectNats(
    {
      servers: cluster.urls,
      name: 'test',
      authenticator: credentialsFile(cluster.credsFile),
      tlsCaFile: cluster.caFile,
    },
    log,
  );
  t.teardown(() => nc.close());
  await joinCluster(nc, { partitions: 2, replicas: 3, newId: () => 'test', expectedId: undefined });
  const js = jetstream(nc);
  for (let from = 0; from < keyCount; from += 100) {
    const keys = Array.from({ length: 100 }, (_, index) => `key.${from + index}`);
    await Promise.all(keys.map((key) => js.publish(subject(key), filler)));
  }
  return { cluster, nc };
}

/** Writes as owners do: overwrites, deletion markers, and values with a TTL. */
async function write(nc: NatsConnection, signal: AbortSignal): Promise<number> {
  const js = jetstream(nc);
  const deletion = headers();
  deletion.set('KV-Operation', 'DEL');
  const passing = headers();
  passing.set('Nats-TTL', '1s');
  let written = 0;
  for (; !signal.aborted; written++) {
    await js.publish(subject(`journal.${written % 64}`), filler + written);
    await js.publish(subject(`key.${(written * 7) % keyCount}`), filler + written);
    if (written % 5 === 0) await js.publish(subject(`key.${(written * 11) % keyCount}`), '', { headers: deletion });
    if (written % 5 === 1) await js.publish(subject(`ops.${written}`), filler, { headers: passing });
    // As fast as a busy tenant, but not as fast as possible: the scrub must find pages at rest.
    await sleep(5);
  }
  return written;
}

interface Place {
  readonly file: string;
  readonly offset: number;
}

/**
 * The place where a stopped server has stored a message, found by its content; undefined: it has
 * no such message.
 */
function placeOf(node: NatsNode, text: string): Place | undefined {
  const paths = readdirSync(node.storeDir, { recursive: true, encoding: 'utf8' });
  const blocks = paths.filter((path) => path.includes(join('streams', stream, 'msgs')) && path.endsWith('.blk'));
  for (const file of blocks.map((path) => join(node.storeDir, path))) {
    const offset = readFileSync(file).indexOf(text);
    if (offset >= 0) return { file, offset };
  }
  return undefined;
}

function flipBit({ file, offset }: Place): void {
  const bytes = readFileSync(file);
  bytes.writeUInt8(bytes.readUInt8(offset) ^ 1, offset);
  writeFileSync(file, bytes);
}

const cutShort = ({ file, offset }: Place): void => truncateSync(file, offset);

/** Waits until a server follows and answers reads like the others. */
async function follower({ nodes }: NatsCluster, nc: NatsConnection): Promise<NatsNode> {
  const { cluster } = await (await jetstreamManager(nc)).streams.info(stream);
  const node = nodes.find(({ name }) => name !== cluster?.leader);
  if (node === undefined) throw new Error('all of them lead');
  return node;
}

const healed = async (nc: NatsConnection): Promise<true> =>
  until('all replicas follow', async () => {
    const { cluster } = await (await jetstreamManager(nc)).streams.info(stream);
    const follow = cluster?.replicas?.filter(({ current, offline }) => current && offline !== true) ?? [];
    return follow.length === 2 ? true : undefined;
  });

/**
 * The results of a process that owns partition 1, from the first scrub that ends with this outcome.
 */
async function found(nc: NatsConnection, outcome: 'whole' | 'partial'): Promise<Scrubbed> {
  const outcomes: string[] = [];
  const scrub = createScrub({
    nc,
    owned: () => [1],
    intervalMs: 100,
    confirmMs,
    clock: systemClock,
    log,
    onScrubbed: (scrubbed) => void outcomes.push(scrubbed),
  });
  scrub.start();
  try {
    return await until(`a ${outcome} scrub`, async () =>
      outcomes.at(-1) === outcome ? scrub.results()[0] : undefined,
    );
  } finally {
    await scrub.stop();
  }
}

const divergentServers = ({ divergent }: Scrubbed): string[] =>
  [...divergent].filter(([, counts]) => counts.missing + counts.extra + counts.different > 0).map(([name]) => name);

t.test('a scrub of three replicas', { timeout: 400_000 }, async (t) => {
  const { cluster, nc } = await start(t);

  await t.test('finds nothing in healthy replicas under writes', async (t) => {
    const ending = new AbortController();
    const writing = write(nc, ending.signal);
    for (let round = 0; round < 2; round++) {
      const result = await scrubStream({ nc, stream, signal: ending.signal, confirmMs, clock: systemClock });
      t.equal(result.outcome, 'whole');
      if (result.outcome === 'alone') continue;
      const none = { missing: 0, extra: 0, different: 0 };
      t.same(Object.fromEntries(result.divergent), { n1: none, n2: none, n3: none });
    }
    ending.abort();
    t.ok((await writing) > 20, 'there were writes');
  });

  for (const [damage, harm] of [
    ['a bit that flipped', flipBit],
    ['a file that was cut short', cutShort],
  ] as const) {
    await t.test(`${damage}: names the server until its copy is made again`, async (t) => {
      const node = await follower(cluster, nc);
      let folder: string | undefined;
      for (let round = 0; folder === undefined && round < roundsMax; round++) {
        const text = `${damage} in round ${round}`;
        for (const [key, data] of [
          ['damaged', text],
          ['after', filler],
        ] as const)
          await until('a write', async () => jetstream(nc).publish(subject(key), data));
        await healed(nc);
        await node.stop();
        const place = placeOf(node, text);
        if (place === undefined) throw new Error(`${node.name} has no message of ${text}`);
        harm(place);
        await node.start();
        await healed(nc);
        // A restarted server answers reads only after it has followed for a while.
        const result = await found(nc, 'whole');
        await node.stop();
        // As it starts, a server may get from the others what it lost.
        if (placeOf(node, text) === undefined) {
          t.same(divergentServers(result), [node.name]);
          t.ok(result.divergent.get(node.name)!.missing > 0);
          folder = dirname(dirname(place.file));
        } else {
          t.same(divergentServers(result), []);
          await node.start();
          await healed(nc);
        }
      }
      if (folder === undefined) throw new Error(`${node.name} got back what it lost ${roundsMax} times`);

      // As the runbook says.
      rmSync(folder, { recursive: true });
      await node.start();
      await healed(nc);
      t.same(divergentServers(await found(nc, 'whole')), []);
    });
  }

  await t.test('reports an absent server as away, not as divergent', async (t) => {
    const node = await follower(cluster, nc);
    await node.stop();
    const result = await found(nc, 'partial');
    t.equal(result.wholeAtMs, 0);
    t.same(divergentServers(result), []);
    t.notOk(result.divergent.has(node.name));
  });
});
