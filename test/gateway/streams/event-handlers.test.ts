import t from 'tap';
import type { Handled } from '../../../gateway/call.ts';
import type { RequestHead } from '../../../gateway/http/engine/engine.ts';
import { eventRoutes } from '../../../gateway/streams/event-handlers.ts';
import { beginning, type EventPosition, type NewestStored } from '../../../gateway/streams/events.ts';
import type { Resumed } from '../../../gateway/streams/sse.ts';
import type { PastFound, PastRange } from '../../../gateway/streams/past.ts';
import type { Question } from '../../../lib/rpc/partition-client.ts';
import type { Author } from '../../../schemas/api/audit/line.ts';
import type { Event, EventType } from '../../../schemas/api/event.ts';
import type { ContainerId, TenantId } from '../../../schemas/ids.ts';
import { limits } from '../../../schemas/limits.ts';
import { subjects } from '../../../schemas/wire/subjects.ts';
import { callOf, exchangeOf, servicesWith } from '../calls.ts';
import { okData, recordingLog, refusal, statusEvent, type AnswerOf } from '../support.ts';
import { streamsByHand } from './looks.ts';

const id = '018f0000-0000-7000-8000-000000000001' as ContainerId;
const acme = 'acme' as TenantId;
const event = (name: string) => statusEvent(name, id);
const placed = (name: string, by: Author | null = null) => ({ seq: 1, event: { ...event(name), by } });
const recent = (names: readonly string[], more = false) =>
  okData({ events: names.map(event), by: names.map(() => null), more, last: 1e9 });

const noPast = {
  since: undefined as string | undefined,
  until: undefined as string | undefined,
  order: undefined as 'asc' | 'desc' | undefined,
  cursor: undefined as string | undefined,
  type: undefined as EventType[] | undefined,
};

/** A stream with one event, and an owner that knows no more; a test changes what they tell. */
function stage() {
  const position = { next: 2, given: '0-1-0' };
  const told = {
    owner: (_question: Question): AnswerOf => recent([]),
    page: (): NewestStored => ({ events: [placed('0-1-0')], position, more: false, isWhole: true }),
    past: (_range: PastRange<Event>): PastFound<Event> => ({ items: [], next: undefined, edge: undefined }),
    resume: (): Resumed<EventPosition> => ({ position }),
  };
  const steps: unknown[] = [];
  const byHand = streamsByHand();
  const services = servicesWith(
    (question) => {
      const { type } = question;
      steps.push(type === 'event.recent' ? ['owner', question.from] : type);
      return told.owner(question);
    },
    {
      log: recordingLog(),
      events: {
        newest: async (subject) => (steps.push(['newest', subject]), Promise.resolve(told.page())),
        past: async (range) => Promise.resolve(told.past(range)),
        after: async (_subject, from) => (steps.push(['after', from]), Promise.resolve(told.page())),
        resume: async (_subject, given) => (steps.push(['resume', given]), Promise.resolve(told.resume())),
      },
      streams: byHand.streams,
    },
  );
  const labels: ContainerId[][] = [];
  const { ask } = services;
  const handlers = eventRoutes(
    Object.defineProperty(services, 'ask', {
      value: (...[lane, question, deadlineMs]: Parameters<typeof ask>): ReturnType<typeof ask> => {
        if (question.type !== 'metadata.list') return ask(lane, question, deadlineMs);
        labels.push(question.ids);
        const data = [{ id, labels: { team: 'a' } }];
        return Promise.resolve({ code: 'ok', body: JSON.stringify({ data, more: false }) });
      },
    }),
  );
  const ofTenant = (follow: boolean, limit = 10, head: Partial<RequestHead> = {}) =>
    handlers['event.list'](callOf('event.list', { query: { ...noPast, follow, limit }, exchange: exchangeOf(head) }));
  const ofPast = (query: { [K in keyof typeof noPast]?: (typeof noPast)[K] } & { readonly limit?: number }) =>
    handlers['event.list'](callOf('event.list', { query: { ...noPast, follow: false, limit: 10, ...query } }));
  const ofContainer = () =>
    handlers['container.events'](
      callOf('container.events', { params: { id }, query: { ...noPast, follow: false, limit: 10 } }),
    );
  const streamOfTenant = () => handlers['event.stream'](callOf('event.stream', { query: { limit: 10 } }));
  const streamOfContainer = (method = 'GET') =>
    handlers['container.events.stream'](
      callOf('container.events.stream', { params: { id }, query: { limit: 10 }, exchange: exchangeOf({ method }) }),
    );
  const routes = { ofTenant, ofPast, ofContainer, streamOfTenant, streamOfContainer };
  return { told, steps, ...routes, asked: services.asked, labels, ...byHand };
}

const bodyOf = ({ body }: { readonly body: unknown }): string =>
  JSON.stringify((JSON.parse(String(body)) as { data: unknown }).data);
const idsIn = (answer: Handled): string[] =>
  answer === 'streamed' ? [] : [...String(answer.body).matchAll(/"id":"([^"]+)"/g)].map(([, name = '']) => name);

t.test('the owner is asked first, then the stream is read: an event between the two is not missed', async (t) => {
  const { told, steps, ofTenant, ofContainer, asked } = stage();
  told.owner = () => recent(['0-2-0']);
  t.same(idsIn(await ofTenant(false)), ['0-1-0', '0-2-0']);
  t.match(steps, [
    ['owner', { before: null }],
    ['newest', subjects.eventsOfTenant(acme)],
  ]);
  t.match(asked, [{ lane: 'read', question: { tenant: 'acme', container: null, limit: 10 } }]);
  steps.length = 0;
  told.owner = ({ type }) => (type === 'container.trace' ? okData({ history: [], gone: true }) : recent([]));
  await ofContainer();
  t.match(steps, ['container.trace', ['owner', { before: null }], ['newest', subjects.event(acme, id)]]);
  t.match(asked.at(-1)?.question, { container: id });
});

t.test('a refusal of the owner is the answer; a stream that cannot be read is 503', async (t) => {
  const { told, steps, ofTenant, ofContainer } = stage();
  told.owner = () => refusal('timeout');
  t.same(await ofTenant(false), refusal('timeout'));
  t.same(await ofContainer(), refusal('timeout'));
  t.same(steps, [['owner', { before: null }], 'container.trace'], 'nothing is read');
  told.owner = () => recent([]);
  told.page = () => {
    throw new Error('the stream’s server is away');
  };
  t.match(await ofTenant(false), { code: 'unavailable' });
});

t.test('events say who caused them, without the address of an operator', async (t) => {
  const author = (tenant: string) => ({ tenant: tenant as TenantId, subject: 'x', token: 'k', address: '203.0.113.7' });
  const [own, operator] = [author('acme'), author('ops')];
  const { told, ofTenant, show } = stage();
  told.page = () => ({
    events: [placed('0-1-0', own), placed('0-1-1', operator), placed('0-1-2')],
    position: { next: 2, given: '0-1-2' },
    more: false,
    isWhole: true,
  });
  const events = ['0-2-0', '0-2-1', '0-2-2', '0-2-3'].map(event);
  told.owner = () => okData({ events, by: [operator, null, own], more: false, last: 1e9 });
  const hidden = { ...operator, address: null };
  const wanted = [own, hidden, null, hidden, null, own, null];
  const authorsIn = (text: string): unknown[] => (JSON.parse(text) as Event[]).map(({ by }) => by);
  const listed = await ofTenant(false);
  t.same(listed === 'streamed' ? [] : authorsIn(bodyOf(listed)), wanted);
  await ofTenant(true);
  const { frames } = await show();
  t.same(authorsIn(`[${frames.map(({ data }) => data).join()}]`), wanted, 'a stream shows the same');
});

t.test('the owner tells its events page by page, newest first, until there are enough', async (t) => {
  const pages = [recent(['0-7-0', '0-8-0'], true), recent(['0-5-0', '0-6-0'], true), recent(['0-4-0'])];
  const rows: [limit: number, count: number, ids: string[]][] = [
    [10, 3, ['0-1-0', '0-4-0', '0-5-0', '0-6-0', '0-7-0', '0-8-0']],
    [3, 2, ['0-6-0', '0-7-0', '0-8-0']],
    [2, 1, ['0-7-0', '0-8-0']],
  ];
  for (const [limit, count, ids] of rows) {
    const { told, asked, ofTenant } = stage();
    told.owner = () => pages[asked.length - 1] ?? refusal('internal');
    t.same(idsIn(await ofTenant(false, limit)), ids);
    const asks = [null, '0-7-0', '0-5-0'].map((before, n) => ({ from: { before }, limit: limit - 2 * n }));
    t.match(
      asked.map(({ question }) => question),
      asks.slice(0, count),
    );
    t.equal(asked.length, count);
  }
  const empty = stage();
  empty.told.owner = () => recent([], true);
  t.same(idsIn(await empty.ofTenant(false)), ['0-1-0'], 'a page without events is the last');
});

t.test('a follower continues behind what it was given', async (t) => {
  const { told, steps, show, ofTenant, asked } = stage();
  await ofTenant(true);
  t.match(await show(), { frames: [{ id: '0-1-0', event: 'event' }], more: false, ended: false });
  told.owner = () => recent(['0-1-0', '0-2-0'], true);
  told.page = () => ({ events: [], position: { next: 2, given: '0-1-0' }, more: false, isWhole: true });
  t.match(await show(), { frames: [{ id: '0-2-0' }], more: true });
  await show();
  const after = (given: string) => [
    ['owner', { after: given }],
    ['after', { next: 2, given }],
  ];
  t.same(steps.slice(2), [...after('0-1-0'), ...after('0-2-0')]);
  t.match(asked.at(-1), { lane: 'watch', question: { limit: limits.eventsMax } });
});

t.test('a frame that the client names is looked up once, even if the read after it fails', async (t) => {
  const { told, steps, show, ofTenant } = stage();
  const { page } = told;
  await ofTenant(true, 10, { headers: { lastEventId: '0-1-0' } });
  told.page = () => {
    throw new Error('away');
  };
  await t.rejects(show(), { message: 'away' });
  told.page = page;
  await show();
  const after = ['after', { next: 2, given: '0-1-0' }];
  t.same(steps, [['owner', { after: '' }], ['resume', '0-1-0'], after, ['owner', { after: '0-1-0' }], after]);
});

t.test('a place that is gone is reported once, before all that is kept', async (t) => {
  const { told, steps, show, ofTenant } = stage();
  const { page } = told;
  const reset = { reason: 'unknown', oldest: '0-1-0' } as const;
  told.resume = () => ({ position: beginning, reset });
  await ofTenant(true, 10, { headers: { lastEventId: 'x' } });
  told.page = () => {
    throw new Error('away');
  };
  await t.rejects(show(), { message: 'away' });
  told.page = page;
  const first = { event: 'reset', data: JSON.stringify(reset) };
  t.match((await show()).frames, [first, { id: '0-1-0', event: 'event' }]);
  t.match(steps, [
    ['owner', { after: '' }],
    ['resume', 'x'],
  ]);
  t.notOk((await show()).frames.some(({ event: name }) => name === 'reset'));
});

t.test('streams of their own begin as those of `follow` do', async (t) => {
  const { told, streamOfTenant, streamOfContainer, show, followed } = stage();
  await streamOfTenant();
  t.match(await show(), { frames: [{ id: '0-1-0', event: 'event' }] });
  told.owner = ({ type }) => (type === 'container.trace' ? okData({ history: [], gone: false }) : recent([]));
  t.equal(await streamOfContainer(), 'streamed');
  t.same(
    followed.map(({ doorbell }) => doorbell),
    [subjects.eventsOfTenant(acme), subjects.event(acme, id)],
  );
  t.match(await streamOfContainer('HEAD'), { code: 'ok', body: '' });
  told.owner = () => refusal('not_found');
  t.match(await streamOfContainer(), { code: 'not_found' });
});

t.test('a follower asks for the labels of a container once, and again after they have changed', async (t) => {
  const { told, ofTenant, show, labels } = stage();
  const pages = [['0-1-0', '0-1-1'], ['0-2-0'], ['0-3-0']];
  const shown: Event[] = [];
  await ofTenant(true);
  for (const names of pages) {
    const events = names.map((name) => placed(name));
    told.page = () => ({ events, position: { next: 2, given: names.at(-1) ?? null }, more: false, isWhole: true });
    const { frames } = await show();
    shown.push(...frames.map(({ data }) => JSON.parse(data) as Event));
  }
  t.same(labels, [[id]]);
  t.ok(shown.length >= 4 && shown.every((one) => one.labels?.['team'] === 'a'));
  const changed = { ...placed('0-4-0').event, type: 'policy_changed', message: 'labels_changed' } as const;
  told.page = () => ({
    events: [{ seq: 1, event: changed }],
    position: { next: 2, given: '0-4-0' },
    more: false,
    isWhole: true,
  });
  t.match(JSON.parse((await show()).frames[0]?.data ?? ''), { type: 'labels_changed', message: null });
  t.same(labels, [[id], [id]]);
});

t.test('a page of the past has what only the owner knows, where it belongs', async (t) => {
  const { told, ofPast } = stage();
  const ranges: PastRange<Event>[] = [];
  const of = (...names: readonly string[]) => names.map((name) => ({ item: placed(name).event, at: 1 }));
  told.owner = () => recent(['0-2-0', '0-3-0']);
  told.past = (range) => {
    ranges.push(range);
    const found = of('0-1-0', '0-2-0').filter(range.matches);
    return { items: range.order === 'asc' ? found : found.toReversed(), next: undefined, edge: undefined };
  };
  const page = async (query: Parameters<typeof ofPast>[0]) => {
    const answer = await ofPast(query);
    const { next_cursor: cursor } = JSON.parse(String((answer as { body: string }).body)) as { next_cursor?: string };
    return { ids: idsIn(answer), cursor };
  };
  t.same((await page({ order: 'asc' })).ids, ['0-1-0', '0-2-0', '0-3-0']);
  t.same((await page({ order: 'desc' })).ids, ['0-3-0', '0-2-0', '0-1-0']);
  t.same((await page({ since: '2020-01-01T00:00:00Z' })).ids, ['0-1-0', '0-2-0', '0-3-0'], 'oldest first');
  t.same((await page({ until: '2020-01-01T00:00:00Z' })).ids, []);
  t.same((await page({ type: ['created'] })).ids, []);
  for (const order of ['asc', 'desc'] as const) {
    const ids: string[] = [];
    let cursor: string | undefined;
    do {
      const next = await page({ order, limit: 1, cursor });
      ids.push(...next.ids);
      cursor = next.cursor;
    } while (cursor !== undefined);
    t.same(ids, order === 'asc' ? ['0-1-0', '0-2-0', '0-3-0'] : ['0-3-0', '0-2-0', '0-1-0'], order);
  }
  told.past = () => ({ items: of('0-1-0'), next: 9, edge: undefined });
  t.same((await page({ order: 'asc' })).ids, ['0-1-0'], 'the stream has more before what only the owner has');
  t.match(await ofPast({ cursor: 'x' }), { code: 'invalid' });
  t.equal(ranges[0]?.subject, subjects.eventsOfTenant(acme));
});
