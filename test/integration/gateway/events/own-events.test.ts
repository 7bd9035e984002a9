/**
 * A tenant reads its own events: the events of an answered request are in the next list and in a
 * resumed stream, however long the stream EVENTS takes. The test has a real owner and a real
 * gateway; the stream EVENTS accepts nothing until the test lets it.
 */
import { jetstreamManager } from '@nats-io/jetstream';
import t from 'tap';
import { streams } from '../../../../schemas/records/buckets.ts';
import type { Event } from '../../../../schemas/api/event.ts';
import { runGateway, startGround, startOwnerOn, type Ground } from '../support.ts';
import { until } from '../../../support/until.ts';

const compute = '/api/v2/compute';

/** Lets the stream take events, or moves it to another subject, so that no stream takes them. */
async function eventsTaken(ground: Ground, isTaken: boolean): Promise<void> {
  const jsm = await jetstreamManager(ground.nc);
  const subjects = isTaken ? [...streams.events.subjects] : ['elsewhere.>'];
  await jsm.streams.update(streams.events.name, { subjects });
}

t.test('events of an answered request are in the next list', async (t) => {
  const ground = await startGround(t);
  const owner = await startOwnerOn(t, ground);
  const gateway = await runGateway(t, ground);
  const headers = {
    authorization: `Bearer ${await ground.issuer.mint({ tenant_id: 'acme' })}`,
    'content-type': 'application/json',
  };
  const call = async <T>(method: string, path: string, body?: unknown): Promise<{ status: number; data: T }> => {
    const response = await fetch(`${gateway.url}${compute}${path}`, {
      method,
      headers,
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    return { status: response.status, data: ((await response.json()) as { data: T }).data };
  };
  const create = async (name: string): Promise<string> => {
    const spec = { name, image: 'nginx:1', cpu_limit: '0.1', mem_limit: '16m' };
    const { status, data } = await call<{ id: string }>('POST', '', spec);
    t.equal(status, 201);
    return data.id;
  };
  const told = async (path: string): Promise<string[]> => {
    const { status, data } = await call<Event[]>('GET', path);
    t.equal(status, 200);
    t.equal(new Set(data.map(({ id }) => id)).size, data.length, 'each once');
    return data.map(({ type, name }) => `${type} ${name}`);
  };

  const one = await create('one');
  await until('published', async () =>
    (await ground.nc.request('$JS.API.STREAM.INFO.EVENTS', '')).string().includes('"messages":1,'),
  );
  await eventsTaken(ground, false);
  const two = await create('two');
  t.equal((await call('POST', `/${one}/stop`)).status, 200);
  t.equal((await call('POST', `/${two}/stop`)).status, 200);
  const all = ['created one', 'created two', 'stop_requested one', 'stop_requested two'];
  t.same(await told('/events'), all, 'the events of all containers');
  t.same(await told('/events?limit=1'), all.slice(-1), 'the newest');
  t.same(await told(`/${one}/events`), ['created one', 'stop_requested one'], 'the events of one container');

  const follow = async (lastEventId?: string): Promise<{ id: string; name: string }[]> => {
    const leave = new AbortController();
    const resume = lastEventId === undefined ? {} : { 'last-event-id': lastEventId };
    const response = await fetch(`${gateway.url}${compute}/events?follow=true`, {
      headers: { ...headers, ...resume },
      signal: leave.signal,
    });
    const frames: { id: string; name: string }[] = [];
    let text = '';
    for await (const chunk of response.body ?? []) {
      text += Buffer.from(chunk as Uint8Array).toString();
      const found = [...text.matchAll(/id: (\S+)\nevent: event\ndata: (.*)\n\n/g)];
      frames.splice(
        0,
        Infinity,
        ...found.map(([, id = '', data = '']) => {
          const event = JSON.parse(data) as Event;
          return { id, name: `${event.type} ${event.name}` };
        }),
      );
      if (frames.at(-1)?.name === all.at(-1)) break;
    }
    leave.abort();
    return frames;
  };
  const frames = await follow();
  t.same(
    frames.map(({ name }) => name),
    all,
    'a stream shows all events',
  );
  for (const [index, { id }] of frames.slice(0, -1).entries()) {
    t.same(
      (await follow(id)).map(({ name }) => name),
      all.slice(index + 1),
      'a resumed stream shows the rest',
    );
  }

  await startOwnerOn(t, ground);
  await owner.stop();
  t.same(await told('/events'), all, 'the next owner has them, too');
  await eventsTaken(ground, true);
  await until('published', async () =>
    /"num_subjects":2/.test((await ground.nc.request('$JS.API.STREAM.INFO.EVENTS', '')).string()),
  );
  t.same(await told('/events'), all, 'no event comes twice once they are in the stream');
  t.same(
    (await follow(frames[0]?.id)).map(({ name }) => name),
    all.slice(1),
    'a resumed stream continues',
  );
});

t.test('while an owner is away the list of events is 503, not incomplete', async (t) => {
  const ground = await startGround(t);
  const owner = await startOwnerOn(t, ground);
  const gateway = await runGateway(t, ground, { env: { REQUEST_DEADLINE: '5s' } });
  const headers = { authorization: `Bearer ${await ground.issuer.mint({ tenant_id: 'acme' })}` };
  const get = () => fetch(`${gateway.url}${compute}/events`, { headers });
  t.equal((await get()).status, 200);
  await owner.stop();
  const away = await get();
  t.equal(away.status, 503);
  t.ok(away.headers.get('retry-after'));
});
