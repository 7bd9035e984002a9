/** The cluster of a process: it makes one, joins an existing one, and refuses another. */
import { randomUUID } from 'node:crypto';
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import t, { type Test } from 'tap';
import { joinCluster } from '../../../actors/cluster.ts';
import { startNats, type Nats } from '../../../dev/servers/nats.ts';
import { clusterSubject, readClusterEntry } from '../../../lib/nats/cluster-record.ts';
import { compareAndSet } from '../../../lib/nats/kv-keys.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { until } from '../../support/until.ts';
import { controlPlane, spawnActors } from './support.ts';

const partitions = 4;

async function start(t: Test) {
  const dir = temporaryFolder(t);
  const nats = await startNats({ dir });
  t.teardown(() => nats.stop());
  const nc = await controlPlane(nats);
  t.teardown(() => nc.close());
  const join = async (expectedId?: string, count = partitions) =>
    joinCluster(nc, { partitions: count, replicas: 1, newId: randomUUID, expectedId });
  return { dir, nats, nc, join };
}

/** Runs the program and collects its log events. */
function startProgram(t: Test, nats: Nats, env: NodeJS.ProcessEnv = {}) {
  const child = spawnActors(nats, partitions, { env, stdio: ['ignore', 'ignore', 'pipe'] });
  const { stderr } = child;
  if (stderr === null) throw new Error('a pipe was asked for');
  const exited = once(child, 'exit');
  t.teardown(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  const lines: string[] = [];
  const serving = new Promise<void>((resolve) => {
    createInterface({ input: stderr }).on('line', (line) => {
      lines.push(line);
      if (line.includes('"event":"serving"')) resolve();
    });
  });
  return { lines, serving, exitCode: exited.then(([code]) => code as number | null) };
}

t.test('the first process makes the cluster, and the others join it', async (t) => {
  const { join } = await start(t);
  const made = await Promise.all([join(), join(), join()]);
  t.equal(new Set(made.map(({ id }) => id)).size, 1);
  t.match(await join(made[0]?.id), { id: made[0]?.id, partitions });
  await t.rejects(join(undefined, 8), {
    name: 'ClusterError',
    message: /has 4 partitions.*LONGSHORE_PARTITIONS says 8/,
  });
  await t.rejects(join('another'), { name: 'ClusterError', message: /is .*; LONGSHORE_CLUSTER_ID says another/ });
});

t.test('a cluster keeps the range of IPv4 addresses that it was given first', async (t) => {
  const { nc, join } = await start(t);
  const joinWith = (tenantIpv4?: string) => joinCluster(nc, { partitions, replicas: 1, newId: randomUUID, tenantIpv4 });
  const { id } = await join();
  const given = await Promise.all([joinWith('10.193.0.0/16'), joinWith('10.193.0.0/16')]);
  for (const cluster of given) t.match(cluster, { id, tenantIpv4: '10.193.0.0/16' });
  for (const other of ['10.194.0.0/16', undefined])
    await t.rejects(joinWith(other), {
      name: 'ClusterError',
      message: /addresses of 10\.193\.0\.0\/16, and keeps them/,
    });
});

t.test('a joining process asks no stream leader but the cluster record’s, as others may be away', async (t) => {
  const { nats, join } = await start(t);
  await join();
  const listener = await controlPlane(nats);
  t.teardown(() => listener.close());
  const asked = new Set<string>();
  listener.subscribe('$JS.API.STREAM.>', { callback: (_, { subject }) => void asked.add(subject) });
  await listener.flush();
  await join();
  // The server may answer who joins before it tells the listener.
  await until('the question for the record', () => asked.has('$JS.API.STREAM.MSG.GET.KV_cluster'));
  t.same(asked, new Set(['$JS.API.STREAM.NAMES', '$JS.API.STREAM.MSG.GET.KV_cluster']));
});

t.test('a process with LONGSHORE_CLUSTER_ID makes no cluster', async (t) => {
  const { join } = await start(t);
  await t.rejects(join('mine'), {
    name: 'ClusterError',
    message: 'there is no cluster on these servers; LONGSHORE_CLUSTER_ID says mine',
  });
  const { id } = await join();
  t.not(id, 'mine');
});

t.test('a program whose LONGSHORE_CLUSTER_ID names another cluster ends and says why', async (t) => {
  const { nats, join } = await start(t);
  await join();
  const { lines, exitCode } = startProgram(t, nats, { LONGSHORE_CLUSTER_ID: 'another' });
  t.equal(await exitCode, 1);
  t.match(lines.join('\n'), /"event":"start_failed".*LONGSHORE_CLUSTER_ID says another/);
});

t.test('a cluster that release 0.1.0 made is refused with what to do', async (t) => {
  const { nats, nc, join } = await start(t);
  const { journals: _, ...record } = await join();
  const { revision } = await readClusterEntry(nc);
  await compareAndSet(nc, clusterSubject, JSON.stringify(record), revision, { timeoutMs: 5_000 });
  const { lines, exitCode } = startProgram(t, nats);
  t.equal(await exitCode, 1);
  t.match(
    lines.filter((line) => line.includes('"level":"error"')),
    [/"event":"start_failed".*release 0\.1\.0 or an older one made this cluster.*start a new one on empty NATS/],
  );
});

t.test('a program ends when the server has lost the state of its cluster', async (t) => {
  const { dir, nats } = await start(t);
  const { lines, serving, exitCode } = startProgram(t, nats);
  await serving;
  await nats.kill9();
  rmSync(join(dir, 'jetstream'), { recursive: true });
  await nats.restart();
  t.equal(await exitCode, 1);
  t.match(lines.join('\n'), /"event":"wrong_cluster".*and now there is none/);
});
