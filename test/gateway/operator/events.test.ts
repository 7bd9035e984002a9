/** The stream of all tenants' events: where it begins, what it shows, what it says is missing. */
import t from 'tap';
import { operatorEvents } from '../../../gateway/operator/events.ts';
import type { AllPage, TenantEvent } from '../../../gateway/streams/all-events.ts';
import type { EventType } from '../../../schemas/api/event.ts';
import type { ContainerId, TenantId } from '../../../schemas/ids.ts';
import { callOf, exchangeOf, servicesWith } from '../calls.ts';
import { statusEvent } from '../support.ts';
import { streamsByHand } from '../streams/looks.ts';

const by = { tenant: null, subject: 'ops', token: null, address: '192.0.2.9' };
const eventAt = (seq: number, more: object = {}): TenantEvent => ({
  seq,
  tenant: 'acme' as TenantId,
  event: { ...statusEvent(`0-${seq}-0`, 'c' as ContainerId), by, ...more },
});
const pageOf = (...events: readonly TenantEvent[]): AllPage => ({
  events,
  position: { next: (events.at(-1)?.seq ?? 0) + 1, given: new Map() },
  more: false,
});

function stage(query: { tenant?: TenantId; type?: EventType[] } = {}, lastEventId?: string) {
  const reads: unknown[] = [];
  const told = { page: pageOf(eventAt(1)), reset: undefined as { reason: 'expired'; oldest: string } | undefined };
  const { streams, followed, show } = streamsByHand();
  const services = servicesWith(undefined, {
    streams,
    allEvents: {
      newest: (subject, limit) => (reads.push(['newest', subject, limit]), Promise.resolve(told.page)),
      after: (subject, { next }) => (reads.push(['after', subject, next]), Promise.resolve(told.page)),
      resume: (subject, place) => {
        reads.push(['resume', subject, place]);
        const { reset } = told;
        const position = { next: reset === undefined ? 7 : 1, given: new Map() };
        return Promise.resolve(reset === undefined ? { position } : { position, reset });
      },
    },
  });
  const exchange = exchangeOf(lastEventId === undefined ? {} : { headers: { lastEventId } });
  const asked = { tenant: undefined, type: undefined, limit: 5, ...query };
  const handled = operatorEvents(services)(callOf('event.stream_all', { query: asked, exchange }));
  return { reads, told, followed, show, handled };
}

t.test('the newest events, then those that come, with tenant and author', async (t) => {
  const { reads, told, show, handled, followed } = stage();
  t.equal(await handled, 'streamed');
  t.equal(followed[0]?.doorbell, 'event.>');
  const { frames } = await show();
  t.match(frames, [{ id: '1.0-1-0', event: 'event' }]);
  t.match(JSON.parse(frames[0]?.data ?? ''), { id: '0-1-0', tenant_id: 'acme', by });
  told.page = pageOf(eventAt(2));
  await show();
  t.same(reads, [
    ['newest', 'event.>', 5],
    ['after', 'event.>', 2],
  ]);
});

t.test('of one tenant, and of some types: as they were, not as they are stored', async (t) => {
  const { told, show, reads, followed } = stage({ tenant: 'acme' as TenantId, type: ['labels_changed'] });
  told.page = pageOf(eventAt(1), eventAt(2, { type: 'policy_changed', message: 'labels_changed' }));
  const { frames } = await show();
  t.match(frames, [{ id: '2.0-2-0' }]);
  t.match(JSON.parse(frames[0]?.data ?? ''), { type: 'labels_changed', message: null });
  t.same(reads, [['newest', 'event.acme.>', 5]]);
  t.equal(followed[0]?.doorbell, 'event.acme.>');
});

t.test('`Last-Event-ID` is looked up once; what can not be gone on behind is said once', async (t) => {
  const { reads, show } = stage({}, '6.0-6-0');
  await show();
  await show();
  t.same(reads, [
    ['resume', 'event.>', { seq: 6, id: '0-6-0' }],
    ['after', 'event.>', 7],
    ['after', 'event.>', 2],
  ]);
  const lost = stage({}, '0-6-0');
  lost.told.reset = { reason: 'expired', oldest: '1.0-1-0' };
  t.match((await lost.show()).frames, [
    { event: 'reset', data: JSON.stringify(lost.told.reset) },
    { event: 'event', id: '1.0-1-0' },
  ]);
  t.match((await lost.show()).frames, [{ event: 'event' }]);
  t.same(lost.reads[0], ['resume', 'event.>', undefined], 'the id of an event alone is no place');
});
