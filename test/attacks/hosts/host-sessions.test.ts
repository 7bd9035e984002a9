/**
 * Hosts, gateways and guesses against sessions: what one may not hear, send or answer. Each
 * attacker has the credentials of a real one.
 */
import { randomBytes } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { connect, credsAuthenticator, type NatsConnection } from '@nats-io/transport-node';
import t from 'tap';
import { subjects } from '../../../schemas/wire/subjects.ts';
import { userOf } from '../../../lib/nats/inbox.ts';
import {
  aboutPort,
  echoKind,
  gatewayOn,
  hostOn,
  placeOf,
  serveSessions,
  startServer,
  type Taken,
} from '../../integration/sessions/support.ts';
import { RecordingPort } from '../../lib/tunnel/support.ts';
import { until } from '../../support/until.ts';
import { protocolFields } from '../../../schemas/wire/version.ts';
import { sessionFetches } from '../../../host-agent/sessions/sessions.ts';

/** The subjects that the server refuses to this connection. */
function refusals(nc: NatsConnection): string[] {
  const said: string[] = [];
  void (async () => {
    for await (const status of nc.status()) if (status.type === 'error') said.push(status.error.message);
  })();
  return said;
}

const sessionId = (): string => randomBytes(16).toString('base64url');

t.test('attacks on sessions', async (t) => {
  const nats = await startServer(t);
  const gateway = await gatewayOn(t, nats);
  const token = userOf(gateway.nc) ?? '';
  const cp = await connect({ servers: nats.url, authenticator: credsAuthenticator(readFileSync(nats.credsFile)) });
  t.teardown(() => cp.close());
  // JetStream and owners answer to any subject that the asker names in its own account; this one
  // even says what the asker likes.
  cp.subscribe('host.*.log.>', { callback: (_, message) => void message.respond(message.data) });
  await cp.flush();
  const [victim, mallory] = await Promise.all([hostOn(t, nats, 'h1'), hostOn(t, nats, 'h2')]);
  const taken: Taken[] = [];
  const agent = serveSessions(victim, [echoKind(taken)]);
  await victim.nc.flush();
  /** All that the victim is rung with: the ids of sessions, which others must not learn. */
  const rings: string[] = [];
  victim.nc.subscribe(subjects.sessionsOfHost(victim.agent), {
    callback: (_, { subject }) => void rings.push(subject.split('.').at(-1) ?? ''),
  });
  const open = async () => {
    const opening = await gateway.sessions.open(placeOf(victim), aboutPort(80));
    if (!opening.ok) throw new Error(opening.end.message);
    return { tunnel: opening.tunnel, session: rings.at(-1) ?? '' };
  };

  await t.test('a host may not hear, ring, answer or speak for another', async (t) => {
    const { tunnel, session } = await open();
    const port = new RecordingPort();
    tunnel.attach(port);
    const said = refusals(mallory.nc);
    const heard: string[] = [];
    for (const subject of [
      subjects.sessionsOfHost(victim.agent),
      'session.>',
      subjects.tunnel(token, victim.agent, session),
      'tunnel.>',
    ]) {
      mallory.nc.subscribe(subject, { callback: (error, message) => void (error ?? heard.push(message.subject)) });
    }
    mallory.nc.publish(subjects.tunnel(token, victim.agent, session), 'forged');
    mallory.nc.publish(subjects.session(victim.agent, session), 'forged');
    mallory.nc.publish(subjects.hostSession(victim.agent), JSON.stringify({ v: 1, ...protocolFields, session }));
    await until('all are refused', () => said.length === 7);
    tunnel.data(0, randomBytes(100));
    await until('the session goes on', () => port.bytes === 100);
    t.same(heard, []);
    t.same(port.ends, []);
    tunnel.end({ reason: 'done' });
  });

  await t.test('a host that knows the id of a session is not told what it is about', async (t) => {
    const quiet = await hostOn(t, nats, 'h3');
    const rung: string[] = [];
    quiet.nc.subscribe(subjects.sessionsOfHost(quiet.agent), {
      callback: (_, { subject }) => void rung.push(subject.split('.').at(-1) ?? ''),
    });
    await quiet.nc.flush();
    const { tunnel, session } = await open();
    const pending = gateway.sessions.open(placeOf(quiet), aboutPort(80));
    await until('another is rung', () => rung.length > 0);
    for (const known of [rung[0], session, sessionId()]) {
      const ask = JSON.stringify({ v: 1, ...protocolFields, session: known });
      await t.rejects(mallory.nc.request(subjects.hostSession(mallory.agent), ask, { timeout: 500 }));
    }
    mallory.nc.publish(subjects.tunnel(token, mallory.agent, session), 'forged');
    await mallory.nc.flush();
    t.equal(tunnel.ended, undefined, 'a tunnel is that of its own host');
    tunnel.end({ reason: 'done' });
    t.match(await pending, { ok: false });
  });

  await t.test('by way of an answer a host rings another, and nothing acts on it', async (t) => {
    const before = taken.length;
    const session = sessionId();
    const reply = subjects.session(victim.agent, session);
    mallory.nc.publish('host.h2.log.acme.c1', '', { reply });
    mallory.nc.publish('host.h2.log.acme.c1', 'content', { reply });
    await until('the victim hears it', () => rings.includes(session));
    const { tunnel } = await open();
    t.equal(taken.length, before + 1, 'only the real one was taken up');
    tunnel.end({ reason: 'done' });
    await until('it is over', () => agent.count() === 0);
  });

  await t.test('a flood of rings does not keep real ones out for long', async (t) => {
    for (let count = 0; count < 4 * sessionFetches; count++) {
      mallory.nc.publish('host.h2.log.acme.c1', '', { reply: subjects.session(victim.agent, sessionId()) });
    }
    const { tunnel } = await open();
    tunnel.end({ reason: 'done' });
    t.pass('it was opened');
  });

  await t.test('a stolen gateway and a host together reach nothing that one alone does not', async (t) => {
    const creds = readFileSync(nats.gatewayCredsFile);
    const stolen = await connect({
      servers: nats.url,
      authenticator: credsAuthenticator(creds),
      inboxPrefix: subjects.userInbox(token),
    });
    t.teardown(() => stolen.close());
    const said = refusals(stolen);
    const target = 'secret.subject.of.actors';
    const written: string[] = [];
    cp.subscribe(target, { callback: (_, message) => void written.push(message.subject) });
    await cp.flush();
    let named: string | undefined;
    stolen.subscribe(`tunnel.${token}.*.*.*`, {
      callback: (_, message) => {
        named = message.reply;
        // A gateway may answer what it hears. If the host chose where to, both could write there.
        stolen.publish(target, 'written');
        message.respond('answered');
      },
    });
    await stolen.flush();
    mallory.nc.publish(subjects.tunnel(token, mallory.agent, sessionId()), 'x', { reply: target });
    await until('it is refused', () => said.some((message) => message.includes(target)));
    t.not(named, target, 'the server names the subject of the answer');
    await cp.flush();
    t.same(written, []);
    for (const subject of ['$JS.API.INFO', 'agent.h1.x.hello', subjects.hostSession(victim.agent), 'desired.h1.0']) {
      stolen.publish(subject, '');
      await until(subject, () => said.some((message) => message.includes(subject)));
    }
  });
});
