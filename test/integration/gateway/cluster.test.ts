/** A gateway serves only the configured cluster, and only while the servers hold it. */
import t from 'tap';
import { serveReads } from '../../../actors/endpoints/reads.ts';
import { waitForCluster, clusterPollMs } from '../../../gateway/backend/cluster.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import { clusterSubject, watchCluster } from '../../../lib/nats/cluster-record.ts';
import { compareAndSet } from '../../../lib/nats/kv-keys.ts';
import type { Log } from '../../../lib/log.ts';
import { subjects } from '../../../schemas/wire/subjects.ts';
import { quietLog } from '../../actors/support.ts';
import { startCluster } from '../actors/support.ts';
import { until } from '../../support/until.ts';

t.test('a gateway waits while the servers hold another cluster, and logs it', async (t) => {
  const { nc, cluster } = await startCluster(t, 2);
  serveReads(nc, quietLog);
  const faults: string[] = [];
  const log: Log = { ...quietLog, error: (event) => faults.push(event) };
  const enough = new AbortController();
  const waiting = waitForCluster(nc, { log, expectedId: 'another' }, enough.signal);
  await until('it is said', () => faults.length > 0);
  await sleep(2 * clusterPollMs);
  enough.abort();
  t.equal(await waiting, undefined);
  t.same(faults, ['wrong_cluster'], 'once');
  const signal = AbortSignal.timeout(60_000);
  t.match(await waitForCluster(nc, { log, expectedId: cluster.id }, signal), cluster);
  t.match(await waitForCluster(nc, { log, expectedId: undefined }, signal), cluster);
});

t.test('a watcher is called once when the cluster is replaced or restored', async (t) => {
  const { nc, cluster } = await startCluster(t, 2);
  for (const [entry, told] of [
    [{ ...cluster, incarnation: 7 }, /and now there is .*, incarnation 7/],
    [{ ...cluster, id: 'another' }, /and now there is another/],
    [{ restoring: true, renewal: 1 }, /and now it is being restored/],
  ] as const) {
    await nc.request(clusterSubject, JSON.stringify(cluster));
    const heard: string[] = [];
    const ending = new AbortController();
    const watching = watchCluster(nc, cluster, ({ message }) => heard.push(message), ending.signal);
    // Watches as a gateway does while no actors process answers its asks.
    const hearing = watchCluster(nc, cluster, ({ message }) => heard.push(message), ending.signal, 'read.nobody');
    await sleep(1500);
    await nc.request(clusterSubject, JSON.stringify(cluster));
    t.same(heard, [], 'the cluster is still the same');
    await nc.request(clusterSubject, JSON.stringify(entry));
    await Promise.all([watching, hearing]);
    t.equal(heard.length, 2);
    for (const message of heard) t.match(message, told);
    ending.abort();
  }
});

t.test('a watcher believes what is stored, not what the server refused', async (t) => {
  const { nc, cluster } = await startCluster(t, 2);
  serveReads(nc, quietLog);
  const heard: string[] = [];
  const ending = new AbortController();
  const watching = watchCluster(
    nc,
    cluster,
    ({ message }) => heard.push(message),
    ending.signal,
    subjects.read('cluster'),
  );
  await nc.flush();
  // As by a restore that slept while another one ran.
  const late = { restoring: true, renewal: 7, by: 'a restore of before' };
  const refused = await compareAndSet(nc, clusterSubject, JSON.stringify(late), 17, { timeoutMs: 5_000 });
  t.equal(refused, undefined);
  await sleep(2 * clusterPollMs);
  t.same(heard, []);
  await nc.request(clusterSubject, JSON.stringify(late));
  await watching;
  t.match(heard, [/and now it is being restored/]);
  ending.abort();
});
