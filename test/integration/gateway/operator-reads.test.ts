/** Streams of all tenants for operators: new events, and usage; on real streams. */
import { jetstream } from '@nats-io/jetstream';
import t from 'tap';
import { v7 as uuidv7 } from 'uuid';
import type { OperatorEvent } from '../../../schemas/api/event.ts';
import type { OperatorUsage } from '../../../schemas/api/usage/usage.ts';
import type { ContainerId, HostKey, TenantId } from '../../../schemas/ids.ts';
import { dayOf, firstHourOf, hourMs, type UsageDay } from '../../../schemas/records/usage.ts';
import { subjects } from '../../../schemas/wire/subjects.ts';
import { memoryOwner, serveOwner, statusEvent } from '../../gateway/support.ts';
import { holdToComponent } from '../../support/http/api-answers.ts';
import { hold, listen, type Frame } from '../../support/http/event-stream.ts';
import { until } from '../../support/until.ts';
import { runGateway, startGround } from './support.ts';

const operator = '/api/v2/operator';
const ground = await startGround(t);
serveOwner(ground.nc, memoryOwner());
const js = jetstream(ground.nc);
const gateway = await runGateway(t, ground);
const headers = { authorization: `Bearer ${await ground.issuer.mint({ scope: 'operator:read' })}` };
const [acme, rival] = ['acme' as TenantId, 'rival' as TenantId];
const [web, job] = [uuidv7() as ContainerId, uuidv7() as ContainerId];

const publish = (tenant: TenantId, container: ContainerId, ...ids: readonly string[]) =>
  js.publish(subjects.event(tenant, container), JSON.stringify(ids.map((id) => statusEvent(id, container))));

function shownIn(frames: readonly Frame[]): string[] {
  const events = frames.filter(({ event }) => event === 'event').map(({ data }) => data as OperatorEvent);
  for (const event of events) holdToComponent('OperatorEvent', event);
  return events.map(({ tenant_id: tenant, id }) => `${tenant} ${id}`);
}

t.test('events of all tenants', async (t) => {
  const follow = (query = '', lastEventId?: string) =>
    listen(t, `${gateway.url}${operator}/events/stream${query}`, {
      ...headers,
      ...(lastEventId === undefined ? {} : { 'last-event-id': lastEventId }),
    });
  await publish(acme, web, '1-1-0', '1-1-1');
  await publish(rival, job, '0-9-0');
  await publish(acme, web, '1-2-0');
  await publish(acme, web, '1-2-0'); // published again, after a crash of its owner
  const all = ['acme 1-1-0', 'acme 1-1-1', 'rival 0-9-0', 'acme 1-2-0'];

  const first = await follow();
  await until('the newest', () => shownIn(first.frames).length === all.length);
  t.same(shownIn(first.frames), all);
  await publish(rival, job, '0-10-0');
  await until('what comes', () => shownIn(first.frames).length === all.length + 1);
  t.equal(shownIn(first.frames).at(-1), 'rival 0-10-0');
  first.leave();

  // Behind the first of two events of one message.
  const resumed = await follow('', first.frames[0]?.id);
  await until('the rest', () => shownIn(resumed.frames).length === all.length);
  t.same(shownIn(resumed.frames), [...all.slice(1), 'rival 0-10-0']);
  t.notOk(resumed.frames.some(({ event }) => event === 'reset'));
  resumed.leave();

  const few = await follow('?limit=1');
  const ofRival = await follow('?tenant=rival&type=status');
  const ofNone = await follow('?type=created');
  // A stream that has begun may not have read yet.
  await until('the newest of both', () => shownIn(few.frames).length === 1 && shownIn(ofRival.frames).length === 2);
  await publish(acme, web, '1-3-0');
  await publish(rival, job, '0-11-0');
  await until('both', () => shownIn(few.frames).length === 3 && shownIn(ofRival.frames).length === 3);
  t.same(shownIn(few.frames), ['rival 0-10-0', 'acme 1-3-0', 'rival 0-11-0']);
  t.same(shownIn(ofRival.frames), ['rival 0-9-0', 'rival 0-10-0', 'rival 0-11-0']);
  t.same(ofNone.frames, []);
  for (const { leave } of [few, ofRival, ofNone]) leave();

  const [firstId = '', lastId = ''] = [first.frames[0]?.id, few.frames.at(-1)?.id];
  for (const [id, reason] of [
    ['1-1-0', 'unknown'],
    [firstId.replace('1-1-0', '1-7-0'), 'unknown'],
    [lastId.replace(/^\d+/, '999'), 'unknown'],
  ] as const) {
    const lost = await follow('?tenant=rival', id);
    await until('all that is kept', () => shownIn(lost.frames).length === 3);
    t.match(lost.frames[0], { event: 'reset', data: { reason, oldest: ofRival.frames[0]?.id } }, id);
    lost.leave();
  }
  const { streams } = await js.jetstreamManager();
  await streams.purge('EVENTS', { filter: subjects.event(acme, web), keep: 1 });
  const late = await follow('', firstId);
  await until('what is kept', () => shownIn(late.frames).length === 4);
  t.match(late.frames[0], { event: 'reset', data: { reason: 'expired' } });
  late.leave();
});

t.test('usage of all tenants', async (t) => {
  const today = dayOf(Math.floor(Date.now() / hourMs));
  const days = [dayOf(firstHourOf(today) - 24), today];
  const put = (tenant: string, day: string, host: string, containers: UsageDay['containers']) => {
    const place = { tenant: tenant as TenantId, day, host: host as HostKey, source: 'a'.repeat(32), part: 0 };
    const names = Object.fromEntries(Object.keys(containers).map((id) => [id, id === web ? 'web' : 'job']));
    return js.publish(subjects.usage(place), JSON.stringify({ v: 1, names, containers } satisfies UsageDay));
  };
  const [yesterday = '', now = ''] = days;
  await put('gone', yesterday, 'h1', { [web]: { 0: [1000, 10, '5000'] } });
  await put('acme', yesterday, 'h1', { [web]: { 23: [2000, 20, '6000'] }, [job]: { 0: [500, 5, '1000'] } });
  await put('acme', now, 'h2', { [web]: { 0: [4000, 40, '7000'] } });
  const range = `from=${yesterday}T00:00:00Z&to=${now}T01:00:00Z`;
  const rowsOf = async (query: string): Promise<OperatorUsage[]> => {
    const rows: OperatorUsage[] = [];
    for (let cursor = ''; ;) {
      const url = `${gateway.url}${operator}/usage?${range}&limit=1&${query}${cursor}`;
      const response = await fetch(url, { headers });
      const text = await response.text();
      hold(url, response, text);
      const { data, next_cursor: next } = JSON.parse(text) as { data: OperatorUsage[]; next_cursor?: string };
      rows.push(...data);
      if (next === undefined) return rows;
      cursor = `&cursor=${next}`;
    }
  };
  const amounts = (run: number, cpu: number, memory: string) => ({
    container_seconds: run,
    cpu_seconds: cpu,
    mem_byte_seconds: memory,
  });
  t.same(await rowsOf('by=tenant'), [
    { tenant_id: 'acme', ...amounts(6.5, 0.065, '14') },
    { tenant_id: 'gone', ...amounts(1, 0.01, '5') },
  ]);
  const ofAcme = [
    { tenant_id: 'acme', container_id: web, name: 'web', ...amounts(6, 0.06, '13') },
    { tenant_id: 'acme', container_id: job, name: 'job', ...amounts(0.5, 0.005, '1') },
  ].sort((one, other) => (one.container_id < other.container_id ? -1 : 1));
  t.same(await rowsOf('by=container'), [
    ...ofAcme,
    { tenant_id: 'gone', container_id: web, name: 'web', ...amounts(1, 0.01, '5') },
  ]);
  t.same(await rowsOf('by=container&tenant=acme'), ofAcme);
  t.same(await rowsOf('by=hour'), [
    { at: `${yesterday}T00:00:00.000Z`, ...amounts(1.5, 0.015, '6') },
    { at: `${yesterday}T23:00:00.000Z`, ...amounts(2, 0.02, '6') },
    { at: `${now}T00:00:00.000Z`, ...amounts(4, 0.04, '7') },
  ]);
  t.same(await rowsOf('tenant=nobody'), []);
});
