/** Sessions of a gateway at hosts, over NATS with the credentials of both. */
import { randomBytes } from 'node:crypto';
import t from 'tap';
import type { Tunnel } from '../../../lib/tunnel/tunnel.ts';
import { limits } from '../../../schemas/limits.ts';
import type { SessionEnd } from '../../../schemas/wire/session.ts';
import { containerId } from '../../actors/support.ts';
import { until } from '../../support/until.ts';
import { RecordingPort } from '../../lib/tunnel/support.ts';
import { aboutPort, echoKind, gatewayOn, hostOn, placeOf, serveSessions, startServer, type Taken } from './support.ts';

t.test('sessions', async (t) => {
  const nats = await startServer(t);
  const gateway = await gatewayOn(t, nats);
  const other = await gatewayOn(t, nats);
  const host = await hostOn(t, nats, 'h1');
  const taken: Taken[] = [];
  const agent = serveSessions(host, [echoKind(taken)]);
  await host.nc.flush();
  const open = async (about = aboutPort(80), at = gateway): Promise<Tunnel> => {
    const opening = await at.sessions.open(placeOf(host), about);
    if (!opening.ok) throw new Error(`${opening.end.reason}: ${opening.end.message}`);
    return opening.tunnel;
  };
  const refused = async (about = aboutPort(80)): Promise<SessionEnd> => {
    const opening = await gateway.sessions.open(placeOf(host), about);
    if (opening.ok) throw new Error('it is open');
    return opening.end;
  };
  const none = (): boolean => gateway.sessions.count + other.sessions.count + agent.count() === 0;

  await t.test('bytes there and back, far more than a window', async (t) => {
    const tunnel = await open();
    const sent = randomBytes(20 * limits.tunnelWindowBytes);
    const back: Buffer[] = [];
    let at = 0;
    const pump = (): void => {
      const part = sent.subarray(at, at + tunnel.room());
      if (part.length > 0) tunnel.data(0, part);
      at += part.length;
    };
    let ended: SessionEnd | undefined;
    tunnel.attach({
      onData: (_channel, bytes) => {
        back.push(Buffer.from(bytes));
        tunnel.took(bytes.length);
      },
      onControl: () => {},
      onRoom: pump,
      onEnd: (end) => (ended = end),
    });
    pump();
    await until('all is back', () => back.reduce((sum, { length }) => sum + length, 0) === sent.length);
    t.ok(Buffer.concat(back).equals(sent));
    tunnel.end({ reason: 'left' });
    t.match(ended, { reason: 'left' });
    await until('the agent heard the end', none);
    t.match(taken.at(-1)?.ends, [{ reason: 'left' }]);
  });

  await t.test('each gateway has its own, and answers for no other', async (t) => {
    const tunnels = await Promise.all([open(), open(aboutPort(80), other), open(), open(aboutPort(80), other)]);
    t.equal(gateway.sessions.count, 2);
    t.equal(other.sessions.count, 2);
    for (const tunnel of tunnels) tunnel.end({ reason: 'done' });
    await until('all are over', none);
  });

  await t.test('refusals say why', async (t) => {
    t.same(await refused(aboutPort(9)), { reason: 'refused', message: 'nobody listens' });
    const { forward: _, ...about } = aboutPort(80);
    t.match(await refused(about), { reason: 'unsupported' });
    t.ok(none());
  });

  await t.test('a container has eight, exactly, however they come', async (t) => {
    const about = aboutPort(80, containerId());
    const openings = await Promise.all(Array.from({ length: 12 }, () => gateway.sessions.open(placeOf(host), about)));
    const good = openings.flatMap((opening) => (opening.ok ? [opening.tunnel] : []));
    t.equal(good.length, limits.sessionsPerContainer);
    const ends = openings.flatMap((opening) => (opening.ok ? [] : [opening.end.reason]));
    t.same(ends, Array(4).fill('too_many'));
    const another = await open();
    good[0]?.end({ reason: 'left' });
    const again = await open(about);
    for (const tunnel of [...good, another, again]) tunnel.end({ reason: 'left' });
    await until('all are over', none);
  });

  await t.test('a host that does not answer is said to be silent', async (t) => {
    const away = await hostOn(t, nats, 'h7');
    const opening = await gateway.sessions.open(placeOf(away), aboutPort(80));
    t.match(opening, { ok: false, end: { reason: 'lost', message: /did not answer/ } });
    t.equal(gateway.sessions.count, 0);
  });

  await t.test('a gateway that stops ends its sessions, and the others stay', async (t) => {
    const [ours, theirs] = [await open(aboutPort(80), other), await open()];
    const port = new RecordingPort();
    ours.attach(port);
    other.sessions.stop();
    t.match(port.ends, [{ reason: 'stopping' }]);
    t.match(await other.sessions.open(placeOf(host), aboutPort(80)), { ok: false });
    await until('one is left', () => agent.count() === 1);
    theirs.end({ reason: 'done' });
    await until('none is left', none);
  });

  await t.test('a connection that breaks ends what goes over it, at both ends', async (t) => {
    const port = new RecordingPort();
    (await open()).attach(port);
    await host.nc.reconnect();
    await until('the gateway has heard', () => port.ends.length === 1 && none());
    t.match(port.ends, [{ reason: 'lost' }]);
    t.match(taken.at(-1)?.ends, [{ reason: 'lost' }]);
    const second = new RecordingPort();
    await until('it is back', () => !host.nc.isClosed());
    (await open()).attach(second);
    await gateway.nc.reconnect();
    await until('both have heard', () => second.ends.length === 1 && none());
    t.match(second.ends, [{ reason: 'lost' }]);
    (await open()).end({ reason: 'done' });
  });

  await t.test('an agent that stops ends its sessions, and takes up no more', async (t) => {
    const port = new RecordingPort();
    (await open()).attach(port);
    agent.stop();
    await until('the gateway has heard', () => port.ends.length === 1);
    t.match(port.ends, [{ reason: 'stopping' }]);
    t.ok(none());
  });
});
