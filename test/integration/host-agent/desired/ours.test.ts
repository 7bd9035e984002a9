/**
 * Ownership of the agent: containers with its cluster and host in their labels (A4), and answers in
 * its own inbox (A7).
 */
import t from 'tap';
import { connect, credsAuthenticator } from '@nats-io/transport-node';
import { readFileSync } from 'node:fs';
import { startNats } from '../../../../dev/servers/nats.ts';
import { emptyDesired, type DesiredSet } from '../../../../host-agent/desired/desired-set.ts';
import { createCachedEngine } from '../../../../host-agent/docker/cached-engine.ts';
import { createEngine } from '../../../../host-agent/docker/engine.ts';
import { createTransport, parseEngineAddress, type EngineAddress } from '../../../../host-agent/docker/transport.ts';
import { observe } from '../../../../host-agent/docker/observed.ts';
import { inventory } from '../../../../host-agent/reconcile/observe/inventory.ts';
import { createBody } from '../../../../host-agent/spec/create-body.ts';
import { sync } from '../../../../host-agent/link/sync.ts';
import type { ContainerId, HostKey } from '../../../../schemas/ids.ts';
import { subjects } from '../../../../schemas/wire/subjects.ts';
import { containerId } from '../../../actors/support.ts';
import { simulatedEngine } from '../../../host-agent/support/simulated-engine.ts';
import { temporaryFolder } from '../../../support/folder.ts';
import { container, owner, reference, syncAnswer } from '../../../host-agent/support/decisions.ts';
import { syncParts } from '../../../host-agent/support/owners.ts';
import { containerName, type Owner } from '../../../../host-agent/docker/ownership.ts';

t.test('the agent sees no container of another cluster or of another host on the same engine', async (t) => {
  const { host } = await simulatedEngine(t);
  const transport = createTransport(parseEngineAddress(host) as EngineAddress, () => {});
  const engine = createCachedEngine(createEngine(transport), owner, () => performance.now());
  t.teardown(() => engine.close());
  await engine.probe(60_000);
  await engine.pull(reference, AbortSignal.timeout(60_000));
  const imageId = (await engine.imageId(reference)) ?? '';
  const make = async (of: Owner, id: ContainerId): Promise<void> => {
    const parts = { reference, imageId, imageLabels: [], secrets: {}, sandbox: null };
    const more = { publishAddress: '127.0.0.1', hostCpuMillis: 1000, capabilities: [], diskBytes: null };
    const body = createBody({ owner: of, container: container({ id }), ...parts, ...more });
    const result = await engine.create(containerName(of, id), body);
    t.equal(result.kind, 'created');
  };
  const [mine, ofCluster, ofHost] = [containerId(), containerId(), containerId()];
  await make(owner, mine);
  await make({ ...owner, cluster: 'another' }, ofCluster);
  await make({ ...owner, host: 'h2' as HostKey }, ofHost);
  t.same([...(await inventory(engine)).present.keys()], [mine]);
  t.equal((await observe(engine, mine, false)).length, 1);
  for (const id of [ofCluster, ofHost]) t.same(await observe(engine, id, false), []);
});

t.test('a sync believes only answers in its own inbox, which has a random name', async (t) => {
  const nats = await startNats({ dir: temporaryFolder(t) });
  t.teardown(() => nats.stop());
  const nc = await connect({ servers: nats.url, authenticator: credsAuthenticator(readFileSync(nats.credsFile)) });
  t.teardown(() => nc.close());
  const sender = { host: owner.host, user: 'U' };
  let desired: DesiredSet = emptyDesired(owner.cluster);
  const parts = syncParts({ desired: () => desired, accept: (next) => void (desired = next) }, { sender });
  const answer = (name: string): string =>
    JSON.stringify(syncAnswer({ cluster: owner.cluster, partitions: 1, containers: [container({ name })] }));
  const inboxes: string[] = [];
  nc.subscribe(subjects.hostSync(sender), {
    callback: (_, message) => {
      // The stranger answers first, to inboxes of earlier asks and to the subject.
      const forged = answer('forged');
      for (const inbox of inboxes) nc.publish(inbox, forged);
      nc.publish(subjects.hostInbox(sender), forged);
      inboxes.push(message.reply ?? '');
      message.respond(answer('true'));
    },
  });
  for (let question = 0; question < 3; question++) {
    desired = emptyDesired(owner.cluster);
    t.same(await sync(nc, parts, undefined, 60_000), { kind: 'complete', due: [] });
    const names = [...desired.sets.values()].flatMap(({ containers }) => containers.map(({ name }) => name));
    t.same(names, ['true']);
  }
  t.equal(new Set(inboxes).size, 3, 'another inbox for every ask');
  for (const inbox of inboxes) t.match(inbox, /^_INBOX_U\.[0-9a-f]{32}\.[0-9a-f]{32}$/);
});
