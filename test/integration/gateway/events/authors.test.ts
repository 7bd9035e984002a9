/**
 * Events say who caused them: in the list and in a stream, before and after the stream EVENTS has
 * them, and under the next owner. A real owner, a real gateway, and the streams between them.
 */
import { randomBytes } from 'node:crypto';
import { jetstream, jetstreamManager } from '@nats-io/jetstream';
import { headers as natsHeaders } from '@nats-io/transport-node';
import t from 'tap';
import { readStream } from '../../../../lib/nats/direct-reads.ts';
import type { Author } from '../../../../schemas/api/audit/line.ts';
import type { Event } from '../../../../schemas/api/event.ts';
import type { ContainerId, TenantId } from '../../../../schemas/ids.ts';
import { streams } from '../../../../schemas/records/buckets.ts';
import { authorsHeader } from '../../../../schemas/records/event-authors.ts';
import type { HelloAnswer, Report, ReportAnswer } from '../../../../schemas/wire/host.ts';
import { visible } from '../../../../schemas/visible.ts';
import { partitionOf, subjects } from '../../../../schemas/wire/subjects.ts';
import { agentOf, hostKey } from '../../../actors/support.ts';
import { observation, roomy } from '../../../actors/support/records.ts';
import { statusEvent } from '../../../gateway/support.ts';
import { hold, listen } from '../../../support/http/event-stream.ts';
import { until } from '../../../support/until.ts';
import { createAsker, enrolHost } from '../../actors/support.ts';
import { runGateway, startGround, startOwnerOn } from '../support.ts';
import { protocolFields } from '../../../../schemas/wire/version.ts';

const compute = '/api/v2/compute';
const acme = 'acme' as TenantId;
const host = hostKey('h1');

const ground = await startGround(t);
const owner = await startOwnerOn(t, ground);
const startNextOwner = () => startOwnerOn(t, ground);
const keys = `k1:${randomBytes(32).toString('base64')}`;
const gateway = await runGateway(t, ground, { env: { VAULT_KEYS: keys } });

/** In letters of one to four bytes, and with what ends a line of a header. */
const zoe = 'Zoë of 日本 🚢\r\nNats-Subject: event.rival.x';
const ofZoe = { tenant: 'acme', subject: visible(zoe), token: 'jti-ü', address: '127.0.0.1' };
const ofOperator = { tenant: 'ops', subject: 'olga', token: 'jti-ops', address: null };
const tokens = {
  zoe: await ground.issuer.mint({ tenant_id: 'acme', sub: zoe, jti: 'jti-ü' }),
  operator: await ground.issuer.mint({ tenant_id: 'ops', sub: 'olga', jti: 'jti-ops', scope: 'operator' }),
  rival: await ground.issuer.mint({ tenant_id: 'rival' }),
};
const bearer = (token: string) => ({ authorization: `Bearer ${token}` });

async function call<T>(token: string, method: string, path: string, body?: unknown): Promise<T> {
  const url = `${gateway.url}${path}`;
  const response = await fetch(url, {
    method,
    headers: { ...bearer(token), ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  const text = await response.text();
  if (!response.ok) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  if (method === 'GET') hold(url, response, text);
  return (JSON.parse(text) as { data: T }).data;
}
const create = (token: string, name: string) =>
  call<{ id: ContainerId }>(token, 'POST', compute, { name, repository: 'library/nginx', mem_limit: '16m' });
const listed = (path = '/events'): Promise<Event[]> => call<Event[]>(tokens.zoe, 'GET', `${compute}${path}`);

/** The events that a stream shows up to the newest of the list. */
async function followed(wanted: readonly Event[]): Promise<Event[]> {
  const stream = await listen(t, `${gateway.url}${compute}/events?follow=true`, bearer(tokens.zoe));
  const shown = () => stream.frames.filter(({ event }) => event === 'event').map(({ data }) => data as Event);
  await until('the stream shows the newest', () => shown().at(-1)?.id === wanted.at(-1)?.id);
  stream.leave();
  return shown();
}

/** All events in the stream EVENTS, and how many of its messages say who caused them. */
async function published() {
  const { stream, filter } = { stream: streams.events.name, filter: subjects.eventsOfTenant(acme) };
  const bounds = { batchMessages: 100, batchBytes: 1_000_000, timeoutMs: 5000 };
  const ids = new Set<string>();
  let withAuthors = 0;
  for await (const { data, head } of readStream(ground.nc, { stream, filter, from: { seq: 1 }, ...bounds })) {
    for (const event of JSON.parse(Buffer.from(data).toString()) as Event[]) {
      t.notOk('by' in event, 'readers refuse unknown fields');
      ids.add(event.id);
    }
    if (head.get(authorsHeader) !== '') withAuthors++;
  }
  return { ids, withAuthors };
}
const inStream = (wanted: readonly Event[]) =>
  until('all are in the stream', async () => {
    const { ids } = await published();
    return wanted.every(({ id }) => ids.has(id));
  });

const told = (events: readonly Event[]): [string, Author | null][] => events.map(({ type, by }) => [type, by]);
const container = { id: '' as ContainerId };

t.test('the author of an event: a key, an operator, nobody', async (t) => {
  const { id: keyId, token } = await call<{ id: string; token: string }>(tokens.zoe, 'POST', '/api/v2/keys', {
    name: 'ci',
    scopes: ['read', 'deploy'],
  });
  container.id = (await create(token, 'web')).id;
  await call(tokens.operator, 'PATCH', `/api/v2/operator/tenants/acme/containers/${container.id}`, {
    pull_policy: 'never',
  });

  await enrolHost(createAsker(ground.nc, ground.partitions), host);
  const say = async <T>(subject: string, message: object): Promise<T> =>
    (await ground.nc.request(subject, JSON.stringify(message), { timeout: 10_000 })).json<T>();
  const hello = { v: 1, ...protocolFields, agent_version: '0', capacity: roomy };
  const greeted = await say<HelloAnswer>(subjects.hostHello(agentOf(host)), hello);
  if (!greeted.ok) throw new Error(greeted.error);
  const placed = await until('the container is placed', async () =>
    (await listed()).find(({ type }) => type === 'placed'),
  );
  const report: Report = {
    v: 1,
    ...protocolFields,
    partition: partitionOf(acme, ground.partitions),
    session: greeted.session,
    items: [
      {
        tenant: acme,
        id: container.id,
        generation: placed.generation,
        seq: 1,
        gone: false,
        observation: observation('running'),
      },
    ],
  };
  t.match(await say<ReportAnswer>(subjects.hostReport(agentOf(host)), report), { ok: true });
  await call(tokens.zoe, 'POST', `${compute}/${container.id}/stop`);

  const ofKey = { tenant: 'acme', token: keyId, address: '127.0.0.1' };
  const all = await listed();
  t.match(told(all), [
    ['created', ofKey],
    ['operator_changed', ofOperator],
    ['placed', null],
    ['status', null],
    ['stop_requested', ofZoe],
  ]);
  t.same(
    all.map(({ by, request_id }) => (by === null) === (request_id === null)),
    all.map(() => true),
    'an event with a request has an author',
  );
  t.same(await listed(`/${container.id}/events`), all, 'those of the container are the same');
  t.same(await followed(all), all, 'a stream shows the same');
  await inStream(all);
  t.ok((await published()).withAuthors > 0);
  t.same(await listed(), all, 'from the stream EVENTS, too');
  t.same(await followed(all), all);
  t.same(await call(tokens.rival, 'GET', `${compute}/events`), []);
});

t.test('the next owner tells what the stream has not taken, with its authors', async (t) => {
  const jsm = await jetstreamManager(ground.nc);
  await jsm.streams.update(streams.events.name, { subjects: ['elsewhere.>'] });
  const before = await listed();
  await call(tokens.zoe, 'POST', `${compute}/${container.id}/start`);
  await call(tokens.operator, 'PATCH', `/api/v2/operator/tenants/acme/containers/${container.id}`, {
    pull_policy: 'always',
  });
  const all = await listed();
  t.same(told(all.slice(before.length)), [
    ['start_requested', ofZoe],
    ['operator_changed', ofOperator],
  ]);
  await startNextOwner();
  await owner.stop();
  t.same(await listed(), all, 'while the stream is away');
  t.same(await followed(all), all);
  await jsm.streams.update(streams.events.name, { subjects: [...streams.events.subjects] });
  await inStream(all);
  t.same(await listed(), all, 'from the stream');
  t.same(await followed(all), all);
});

t.test('an event without a header has no author, and a header that is damaged harms no event', async (t) => {
  const js = jetstream(ground.nc);
  const id = container.id;
  const newest = (await listed()).at(-1)?.id.split('-') ?? [];
  // After those that the tenant has: the same commit, and higher indexes.
  const next = (index: number) => statusEvent(`${newest[0]}-${newest[1]}-${index}`, id);
  const publish = async (index: number, by?: string): Promise<void> => {
    const head = natsHeaders();
    if (by !== undefined) head.set(authorsHeader, by);
    await js.publish(subjects.event(acme, id), JSON.stringify([next(index), next(index + 1)]), { headers: head });
  };
  const ofA = { tenant: 'acme', subject: 'a', token: 'k', address: null };
  await publish(100);
  await publish(
    102,
    JSON.stringify([
      [1, null],
      [1, ofA],
    ]),
  );
  await publish(104, JSON.stringify([[1, ofA]]));
  for (const [index, damaged] of ['rubbish', '[[0,null]]', `[[1,{"tenant":1}]]`, '[[1e300,null]]'].entries())
    await publish(106 + 2 * index, damaged);
  const wanted = [null, null, null, ofA, ofA, ...Array.from({ length: 9 }, () => null)];
  const shown = await until('all are there', async () => {
    const events = (await listed()).filter(({ name, type }) => name === 'web' && type === 'status');
    const added = events.filter(({ id }) => Number(id.split('-')[2]) >= 100);
    return added.length === wanted.length ? added : undefined;
  });
  t.same(
    shown.map(({ by }) => by),
    wanted,
  );
  t.match(await gateway.registry.metrics(), /longshore_gateway_malformed\S* [1-9]/);
});
