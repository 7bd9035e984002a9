import t from 'tap';
import type { Schemas } from '../../../cli/client/api.ts';
import { eventsOf, momentIn, momentOf, wayOf } from '../../../cli/history/way.ts';

const line = (fields: object): string =>
  JSON.stringify({ level: 'info', time: '2026-01-02T03:04:05.006Z', program: 'gateway', pid: 7, ...fields });

t.test('a log line of the request', (t) => {
  t.same(momentIn(line({ event: 'request', requestId: 'r-1', status: 201 }), 'r-1'), {
    at: '2026-01-02T03:04:05.006Z',
    from: 'gateway',
    what: 'request',
    details: { status: 201 },
  });
  const step = { program: 'host-agent', host: 'eu-1', event: 'step_taken', requestId: 'r-1', step: 'pull' };
  t.match(momentIn(line(step), 'r-1'), { from: 'host-agent eu-1', details: { step: 'pull', host: undefined } });
  const session = { event: 'session_started', requestId: 'r-1', host: 'eu-1' };
  t.match(momentIn(line(session), 'r-1'), { from: 'gateway', details: { host: 'eu-1' } });
  t.end();
});

t.test('a line that is no log line of the request is left out', (t) => {
  for (const other of [
    line({ event: 'request', requestId: 'r-11' }),
    line({ event: 'request', requestId: 'r-2', path: 'r-1' }),
    line({ event: 'request', requestId: 'r-1' }).slice(1),
    line({ requestId: 'r-1' }),
    line({ event: 'request', requestId: 'r-1', time: 'today' }),
    'r-1',
    '',
  ])
    t.equal(momentIn(other, 'r-1'), undefined, other);
  t.end();
});

const event = (id: string, changes: Partial<Schemas['Event']>): Schemas['Event'] => ({
  id,
  ts: '2026-01-02T03:04:05.006Z',
  type: 'status',
  container_id: 'a',
  name: 'web',
  generation: 2,
  host_key: null,
  status: 'running',
  reason: null,
  message: null,
  exit_code: null,
  request_id: null,
  by: null,
  ...changes,
});

t.test('the events of a request are its own, and those that follow from its generation', (t) => {
  const events = [
    event('0-12-0', { generation: 3 }),
    event('0-11-0', { container_id: 'b' }),
    event('0-10-0', {}),
    event('0-9-1', { type: 'placed', request_id: 'r-1' }),
    event('0-9-0', { type: 'created', generation: 1, request_id: 'r-1' }),
    event('0-13-0', { type: 'stop_requested', generation: 3, request_id: 'r-2' }),
    event('0-8-0', {}),
  ];
  t.same(
    eventsOf(events, 'r-1').map(({ id }) => id),
    ['0-9-0', '0-9-1', '0-10-0'],
  );
  t.same(eventsOf(events, 'r-3'), []);
  t.end();
});

t.test('an event says who caused it, if anybody did', (t) => {
  const by = { tenant: 'acme', subject: 'zoë', token: 'k-1', address: '203.0.113.7' };
  t.match(momentOf(event('0-9-0', { by })), { details: { by: 'zoë' } });
  t.notOk('by' in momentOf(event('0-9-1', {})).details);
  t.end();
});

t.test('the way is in the order of time, with the time between', (t) => {
  const moment = (at: string) => ({ at, from: 'api', what: 'x', details: {} });
  const way = wayOf([moment('2026-01-02T03:04:06.5Z'), moment('2026-01-02T03:04:05Z'), moment('2026-01-02T03:04:06Z')]);
  t.same(
    way.map(({ after_ms }) => after_ms),
    [0, 1000, 500],
  );
  t.end();
});
