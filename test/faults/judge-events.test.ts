/** The judgement of events notices what it is there for. */
import t from 'tap';
import type { Operation, Request, Result, Seen } from './check/history.ts';
import { eventFaults, type Told } from './judge-events.ts';

const operation = (requestId: string, atMs: number, request: Request, result: Result): Operation => ({
  process: 't1-0',
  tenant: 't1',
  requestId,
  request,
  invokedMs: atMs,
  answeredMs: atMs + 1,
  result,
});
const seen: Seen = {
  ...{ id: 'c1', name: 'a', host: 'h1', version: null, isRemoving: false },
  ...{ desired: null, generation: null, update: null },
};
const done: Result = { kind: 'ok', told: { of: 'container', container: seen } };
const version = { tag: '1', cpuMillis: 1, memBytes: 1 };
const create = { kind: 'create', name: 'a', version, idempotencyKey: null } as const;
const operations = [
  operation('r1', 10, create, done),
  operation('r2', 20, { kind: 'stop', id: 'c1' }, done),
  operation('r3', 30, { kind: 'start', id: 'c1' }, { kind: 'refused', code: 'conflict' }),
  operation('r4', 40, { kind: 'delete', id: 'c1' }, done),
];
const event = (id: string, type: Told['type'], generation: number, request_id: string | null): Told => ({
  ...{ id, type, generation, request_id },
  container_id: 'c1',
});
const good = [
  event('e1', 'created', 1, 'r1'),
  event('e2', 'placed', 2, 'r1'),
  event('e3', 'status', 2, 'r1'),
  event('e4', 'stop_requested', 3, 'r2'),
  event('e5', 'delete_requested', 4, 'r4'),
  event('e6', 'removed', 4, 'r4'),
];
const standing = new Map([['c1', 4]]);
const without = (...ids: string[]): Told[] => good.filter(({ id }) => !ids.includes(id));

t.test('what is wrong with events', (t) => {
  const cases: [string, readonly Told[], readonly RegExp[]][] = [
    ['each generation has its event', good, []],
    ['a lost event', without('e4'), [/c1 has no event of the generations 3 to 3/]],
    ['the last generation has none', without('e5', 'e6'), [/at generation 4, and its events at 3/, /r4 .* no event/]],
    ['none of a container', [], [/r1 was answered for c1, which has no event created/, /r4 was answered/]],
    ['the same twice', [...good, good[5]!], [/event e6 comes 2 times/, /removed 2 times/]],
    ['one change twice', [...good.slice(0, 4), { ...good[3]!, id: 'x' }, ...good.slice(4)], [/stop r2 has 2 events/]],
    ['an event of what was refused', [...good, event('x', 'start_requested', 4, 'r3')], [/refused as conflict/]],
    ['out of order', [...good.slice(1), good[0]!], [/1 to 1/, /created e1 of generation 1 comes after one of 4/]],
  ];
  for (const [name, events, faults] of cases) {
    const found = eventFaults(operations, events, standing);
    t.match(found, faults, name);
    t.equal(found.length, faults.length, name);
  }
  t.end();
});

t.test('events of a time that the stream forgot may be missing, and none comes twice', (t) => {
  const forgotten = [{ fromMs: 15, toMs: 25 }];
  t.same(eventFaults(operations, without('e4'), standing, forgotten), []);
  t.match(eventFaults(operations, without('e1', 'e5'), standing, forgotten), [/^create r1 was/, /^delete r4 was/]);
  t.match(eventFaults(operations, [...good, good[0]!], standing, forgotten), [/event e1 comes 2/, /created 2 times/]);
  const earlier = [{ fromMs: 5, toMs: 9 }];
  t.match(eventFaults(operations, without('e4'), standing, earlier), [/no event of the generations 3 to 3/]);
  t.end();
});
