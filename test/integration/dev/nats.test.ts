import t, { type Test } from 'tap';
import { readFileSync } from 'node:fs';
import { connect, credsAuthenticator, jwtAuthenticator, type NatsConnection } from '@nats-io/transport-node';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { createUser } from '@nats-io/nkeys';
import { startNats, type Nats } from '../../../dev/servers/nats.ts';
import { mintHostUserJwt } from '../../support/host-user.ts';
import { sleep, within } from '../../../lib/time/backoff.ts';
import { refusal } from '../../support/refusal.ts';
import { temporaryFolder } from '../../support/folder.ts';

const control = (nats: Nats, credsFile = nats.credsFile): Promise<NatsConnection> =>
  connect({ servers: nats.url, authenticator: credsAuthenticator(readFileSync(credsFile)) });

async function host(nats: Nats, hostKey: string, user = createUser()): Promise<NatsConnection> {
  const jwt = await mintHostUserJwt({
    hostKey,
    publicKey: user.getPublicKey(),
    hostsAccount: nats.hostsAccount,
    hostsSigningSeed: readFileSync(nats.hostsSigningSeedFile, 'utf8'),
  });
  return connect({
    servers: nats.url,
    authenticator: jwtAuthenticator(jwt, user.getSeed()),
    inboxPrefix: `_INBOX_${user.getPublicKey()}`,
  });
}

interface Stack {
  readonly nats: Nats;
  readonly cp: NatsConnection;
  readonly h1: NatsConnection;
  readonly key: string;
}

async function stack(t: Test): Promise<Stack> {
  const user = createUser();
  const nats = await startNats({ dir: temporaryFolder(t) });
  t.teardown(() => nats.stop());
  const [cp, h1] = await Promise.all([control(nats), host(nats, 'h1', user)]);
  t.teardown(() => Promise.all([cp.close(), h1.close()]));
  return { nats, cp, h1, key: user.getPublicKey() };
}

t.test('a host and the control plane exchange their messages across accounts', async (t) => {
  const { nats, cp, h1, key } = await stack(t);

  t.test('several control-plane processes answer one sync', async (t) => {
    for (const name of ['a', 'b', 'c']) {
      cp.subscribe('agent.*.*.sync', { callback: (_, message) => void message.respond(`${name} ${message.subject}`) });
    }
    await cp.flush();
    const answers: string[] = [];
    for await (const answer of await h1.requestMany(`agent.h1.${key}.sync`, '{}', {
      strategy: 'count',
      maxMessages: 3,
    })) {
      answers.push(answer.string());
    }
    t.same(
      answers.sort(),
      ['a', 'b', 'c'].map((name) => `${name} agent.h1.${key}.sync`),
    );
  });

  for (const verb of ['report', 'hello']) {
    t.test(`a ${verb} is acknowledged`, async (t) => {
      cp.subscribe(`agent.*.*.${verb}`, { callback: (_, message) => void message.respond('taken') });
      await cp.flush();
      t.equal((await h1.request(`agent.h1.${key}.${verb}`, 'x', { timeout: 30_000 })).string(), 'taken');
    });
  }

  t.test('a stream stores a log block, and its acknowledgement reaches the host', async (t) => {
    const manager = await jetstreamManager(cp);
    await manager.streams.add({ name: 'LOGS', subjects: ['host.*.log.>'] });
    const acknowledgement = await h1.request('host.h1.log.t.c', 'line', { timeout: 30_000 });
    t.match(acknowledgement.json(), { stream: 'LOGS', seq: 1 });
    const stored = await manager.streams.getMessage('LOGS', { last_by_subj: 'host.h1.log.t.c' });
    t.equal(stored?.string(), 'line');
  });

  t.test('heartbeats reach the control plane, and doorbells the host', async (t) => {
    const actors = await control(nats, nats.actorsCredsFile);
    t.teardown(() => actors.close());
    const beats = cp.subscribe('agent.*.*.beat', { max: 1 });
    const own = actors.subscribe('agent.h1.*.beat', { max: 1 });
    const doorbells = h1.subscribe('desired.h1.*', { max: 1 });
    await Promise.all([cp.flush(), actors.flush(), h1.flush()]);
    h1.publish(`agent.h1.${key}.beat`, 'up');
    cp.publish('desired.h1.3', '');
    const first = async (messages: AsyncIterable<{ subject: string }>): Promise<string> => {
      for await (const message of messages) return message.subject;
      return 'none';
    };
    t.equal(await within(first(beats), 3_000, 'a beat'), `agent.h1.${key}.beat`);
    t.equal(await within(first(own), 3_000, 'a beat at the owner'), `agent.h1.${key}.beat`);
    t.equal(await within(first(doorbells), 3_000, 'a doorbell'), 'desired.h1.3');
  });
});

t.test('a host reaches only its own subjects', async (t) => {
  const { nats, cp, h1, key } = await stack(t);
  const other = createUser().getPublicKey();
  const manager = await jetstreamManager(cp);
  await manager.streams.add({ name: 'KV_state-0', subjects: ['$KV.state-0.>'], allow_direct: true });
  await jetstream(cp).publish('$KV.state-0.epoch', 'mine');
  const leaked: string[] = [];
  for (const subject of ['host.h2.>', 'agent.>', 'host.*.sync', 'part.>', 'owner.>', 'desired.>', '$KV.>']) {
    cp.subscribe(subject, { callback: (_, message) => void leaked.push(message.subject) });
  }
  await cp.flush();

  const publications = [
    `agent.h2.${key}.sync`,
    `agent.h2.${key}.beat`,
    `agent.h1.${other}.sync`,
    `agent.h1.${other}.hello`,
    `agent.h1.${other}.beat`,
    'host.h1.sync',
    'host.h1.hello',
    'host.h1.beat',
    'host.h2.sync',
    'host.h2.beat',
    'host.h2.log.t.c',
    'host.h1.log.t.c.x',
    'desired.h1.0',
    'desired.h2.0',
    'part.0',
    'owner.one',
    '$JS.API.INFO',
    '$JS.API.STREAM.MSG.GET.KV_state-0',
    '$KV.state-0.epoch',
    '$SYS.REQ.SERVER.PING',
    '_INBOX_h2.x',
  ];
  for (const subject of publications) {
    t.test(`publishing ${subject} is refused`, async (t) => {
      t.match(await refusal(h1, () => h1.publish(subject, 'x')), /permissions violation/i);
    });
  }
  const subscriptions = [
    'host.>',
    'host.h2.sync',
    'desired.>',
    'desired.h2.*',
    '_INBOX_h1.>',
    '_INBOX_h2.>',
    `_INBOX_${other}.>`,
    '_INBOX.>',
    'agent.>',
    'part.0',
    'owner.one',
    '>',
  ];
  for (const subject of subscriptions) {
    t.test(`subscribing to ${subject} is refused`, async (t) => {
      t.match(
        await refusal(h1, () => void h1.subscribe(subject, { callback: () => undefined })),
        /permissions violation/i,
      );
    });
  }
  t.test('a host does not reach JetStream through its inbox prefix', async (t) => {
    await t.rejects(h1.request('$JS.API.INFO', '', { timeout: 500 }));
    await t.rejects(jetstreamManager(h1, { timeout: 500 }));
  });
  t.test('no refused message arrived, and the key is unchanged', async (t) => {
    await sleep(100);
    t.same(leaked, []);
    const kept = await manager.streams.getMessage('KV_state-0', { last_by_subj: '$KV.state-0.epoch' });
    t.equal(kept?.string(), 'mine');
  });
  t.test('a host key that would widen the permissions is not signed', async (t) => {
    for (const hostKey of ['*', '>', 'h1.x', '', 'h 1']) {
      await t.rejects(
        mintHostUserJwt({
          hostKey,
          publicKey: createUser().getPublicKey(),
          hostsAccount: nats.hostsAccount,
          hostsSigningSeed: readFileSync(nats.hostsSigningSeedFile, 'utf8'),
        }),
        /not a host key/,
        JSON.stringify(hostKey),
      );
    }
  });
  t.test('a user signed by another key is refused', async (t) => {
    const other = await startNats({ dir: temporaryFolder(t) });
    t.teardown(() => other.stop());
    const user = createUser();
    const jwt = await mintHostUserJwt({
      hostKey: 'h1',
      publicKey: user.getPublicKey(),
      hostsAccount: nats.hostsAccount,
      hostsSigningSeed: readFileSync(other.hostsSigningSeedFile, 'utf8'),
    });
    await t.rejects(
      connect({ servers: nats.url, authenticator: jwtAuthenticator(jwt, user.getSeed()), reconnect: false }),
      /authorization/i,
    );
  });
});

t.test('a killed or restarted server keeps its data, identities and port', async (t) => {
  const dir = temporaryFolder(t);
  const nats = await startNats({ dir });
  t.teardown(() => nats.stop());
  const before = await control(nats);
  const manager = await jetstreamManager(before);
  await manager.streams.add({ name: 'S', subjects: ['s'], allow_atomic: true });
  t.ok((await manager.getAccountInfo()).api.level! >= 2, 'the API level that the journal needs');
  await jetstream(before).publish('s', 'one');
  await nats.kill9();
  await before.close();
  await nats.restart();
  const after = await control(nats);
  t.equal((await (await jetstreamManager(after)).streams.info('S')).state.messages, 1);
  await after.close();
  await nats.stop();
  const second = await startNats({ dir });
  t.teardown(() => second.stop());
  t.equal(second.hostsAccount, nats.hostsAccount);
  await (await control(second)).close();
});
