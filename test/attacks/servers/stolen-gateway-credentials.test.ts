/**
 * A thief connects to the real NATS server with the stolen credentials of a gateway. The thief can
 * ask what a gateway may ask, but can't write state, delete or purge a stream, publish as a host,
 * or read the answers to another process.
 */
import { join } from 'node:path';
import { jetstreamManager } from '@nats-io/jetstream';
import { headers, type NatsConnection } from '@nats-io/transport-node';
import t from 'tap';
import { prepareNatsIdentity } from '../../../ops/nats-keys/nats-identity.ts';
import { connectNats } from '../../../lib/nats/connection.ts';
import { bucketPrefix, buckets, bucketStream, keys, streams } from '../../../schemas/records/buckets.ts';
import { encodeAsks, decodeAnswerPart, decodeAnswers } from '../../../schemas/wire/codec.ts';
import { subjects } from '../../../schemas/wire/subjects.ts';
import { inboxOf } from '../../../lib/nats/inbox.ts';
import { quietLog } from '../../actors/support.ts';
import { ownerOn, startCluster } from '../../integration/actors/support.ts';

// Before the first test: tap ends a file that has a teardown and nothing to do for a moment.
const ground = await startCluster(t, 1);
const { nats, nc } = ground;
const link = { servers: [nats.url], name: 'test' };
const control = await connectNats({ ...link, credsFile: nats.actorsCredsFile }, quietLog);
t.teardown(() => control.close());
const owner = ownerOn(ground, control);
await owner.start();
t.teardown(() => owner.stop());
const thief = await connectNats({ ...link, credsFile: nats.gatewayCredsFile }, quietLog);
t.teardown(() => thief.close());

const stateStream = bucketStream(buckets.state.bucket(0));
const statePrefix = bucketPrefix(buckets.state.bucket(0));
const manager = await jetstreamManager(nc);

/** The error that the server sends in response to `act`. */
async function refusal(of: NatsConnection, act: () => void): Promise<string> {
  const found = (async () => {
    for await (const status of of.status()) if (status.type === 'error') return String(status.error);
    return 'closed';
  })();
  act();
  await of.flush();
  return found;
}
const refused = /permissions violation/i;

t.test('the server refuses to let a gateway publish what only owners, actors and hosts may', async (t) => {
  for (const subject of [
    `${statePrefix}${keys.epoch}`,
    `${statePrefix}tenant.victim`,
    `$JS.API.STREAM.DELETE.${streams.events.name}`,
    `$JS.API.STREAM.PURGE.${streams.logs.name}`,
    `$JS.API.STREAM.UPDATE.${stateStream}`,
    `$JS.API.STREAM.MSG.DELETE.${stateStream}`,
    `$JS.API.STREAM.MSG.GET.${stateStream}`,
    `$JS.API.DIRECT.GET.${stateStream}`,
    '$JS.API.CONSUMER.CREATE.LOGS',
    'host.h1.report',
    'host.h1.beat',
    'host.h1.log.victim.c1',
    'event.victim.c1',
    'desired.h1.0',
    'changed.victim.c1',
    'directory.hosts',
    'members.changed',
    '_INBOX.somebody.1',
    '$SYS.REQ.SERVER.PING',
  ]) {
    t.match(await refusal(thief, () => thief.publish(subject, 'x')), refused, subject);
  }
});

t.test('the server does not show a gateway the asks and answers of others', async (t) => {
  for (const subject of [
    '>',
    '_INBOX.>',
    `${subjects.userInbox('UA')}.>`,
    'part.*',
    'owner.*',
    'read.*',
    '$KV.>',
    'desired.>',
    'host.>',
    'host.*.report',
  ]) {
    t.match(await refusal(thief, () => void thief.subscribe(subject, { callback: () => {} })), refused, subject);
  }
});

t.test('two gateways with credentials of their own do not read each other’s answers', async (t) => {
  const folder = join(nats.gatewayCredsFile, '..');
  await prepareNatsIdentity(folder, ['g1', 'g2']);
  const as = (name: string) => connectNats({ ...link, credsFile: join(folder, `${name}.creds`) }, quietLog);
  const [g1, g2] = [await as('gateway-g1'), await as('gateway-g2')];
  t.teardown(() => Promise.all([g1.close(), g2.close()]));
  const inbox = inboxOf(g1);
  const prefix = inbox.slice(0, inbox.lastIndexOf('.'));
  t.match(await refusal(g2, () => void g2.subscribe(`${prefix}.>`, { callback: () => {} })), refused);
  const ask = { type: 'tenant.get', tenant: 'acme', rid: 'r', budgetMs: 5000 } as const;
  const answer = await g1.request(subjects.partition(0), encodeAsks([JSON.stringify(ask)]), { timeout: 30_000 });
  t.match(decodeAnswers(answer.string())[0], { code: 'ok' });
});

/**
 * A reply subject may be any subject, and a program that answers would publish there for the thief.
 */
t.test('no program answers to a subject that the asker may not publish to', async (t) => {
  await nc.request(`host.h9.log.victim.c1`, 'x', { timeout: 30_000 });
  const epoch = await manager.streams.getMessage(stateStream, { last_by_subj: `${statePrefix}${keys.epoch}` });
  const before = await manager.streams.info(streams.logs.name);
  const trick = [
    `${statePrefix}${keys.epoch}`,
    `${statePrefix}tenant.victim`,
    `$JS.API.STREAM.DELETE.${streams.events.name}`,
    `$JS.API.STREAM.PURGE.${streams.logs.name}`,
    'host.h1.report',
  ];
  const ask = encodeAsks([JSON.stringify({ type: 'tenant.get', tenant: 'acme', rid: 'r', budgetMs: 5000 })]);
  const missing = JSON.stringify({ last_by_subj: 'host.none.log.x.y' });
  const found = JSON.stringify({ last_by_subj: 'host.h9.log.victim.c1' });
  const named = await thief.request(subjects.partition(0), ask, { timeout: 30_000 });
  const { owner: process } = decodeAnswerPart(named.string());
  if (process === undefined) throw new Error('the answer names no process');
  const written: string[] = [];
  const watch = nc.subscribe('>', {
    callback: (_, { subject, data }) => {
      // The subject is the reply of a message with the thief's request; a message published to this
      // subject is an answer.
      if (trick.includes(subject)) written.push(`${subject} ${new TextDecoder().decode(data)}`);
    },
  });
  await nc.flush();
  for (const reply of trick) {
    const traced = headers();
    traced.set('Nats-Trace-Dest', reply);
    thief.publish(subjects.partition(0), ask, { reply });
    thief.publish(subjects.owner(process), ask, { reply });
    thief.publish(subjects.read('logs'), missing, { reply });
    thief.publish(subjects.read('logs'), found, { reply });
    thief.publish(subjects.read('cluster'), '{}', { reply });
    thief.publish(subjects.partition(0), ask, { reply: `${inboxOf(thief)}`, headers: traced });
  }
  // The same connection's later question is answered after them.
  const answer = await thief.request(subjects.read('logs'), found, { timeout: 30_000 });
  t.equal(answer.string(), 'x');
  await thief.request(subjects.partition(0), ask, { timeout: 30_000 });
  await thief.request(subjects.owner(process), ask, { timeout: 30_000 });
  await nc.flush();
  t.same(written, []);
  watch.unsubscribe();
  const after = await manager.streams.info(streams.logs.name);
  t.equal(after.state.messages, before.state.messages);
  t.ok(await manager.streams.info(streams.events.name));
  const kept = await manager.streams.getMessage(stateStream, { last_by_subj: `${statePrefix}${keys.epoch}` });
  t.equal(kept?.seq, epoch?.seq);
});
