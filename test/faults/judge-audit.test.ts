/** The judgement of the audit notices what it is there for. */
import t from 'tap';
import type { AuditLine } from '../../schemas/api/audit/line.ts';
import type { TenantId } from '../../schemas/ids.ts';
import type { Operation, Request, Result } from './check/history.ts';
import { auditFaults } from './judge-audit.ts';

const tenant = 't1' as TenantId;
const operation = (requestId: string, request: Request, result: Result): Operation => ({
  process: 't1-0',
  tenant,
  requestId,
  request,
  invokedMs: 1,
  answeredMs: 2,
  result,
});
const line = (requestId: string, action: string, outcome: string): AuditLine => ({
  id: `0-1-${requestId}`,
  ts: '2026-01-01T00:00:00.000Z',
  action,
  outcome,
  tenant,
  by: { tenant, subject: 't1-user', token: 'a', address: '127.0.0.1' },
  request_id: requestId,
  target: {},
  detail: null,
});

const stop = { kind: 'stop', id: 'c1' } as const;
const refused = (code: string): Result => ({ kind: 'refused', code });
const done: Result = { kind: 'ok', told: { of: 'list', containers: [], isWhole: true } };
const operations = [
  operation('a', stop, done),
  operation('b', stop, refused('not_found')),
  operation('c', stop, refused('unavailable')),
  operation('d', stop, { kind: 'unknown', why: 'timeout' }),
  operation('e', { kind: 'list' }, done),
];
const good = [line('a', 'container.stop', 'done'), line('b', 'container.stop', 'not_found')];

t.test('every answered write with one line is right, and one without an answer may have one', (t) => {
  t.same(auditFaults(operations, good), []);
  t.same(auditFaults(operations, [...good, line('d', 'container.stop', 'done')]), []);
  const goneMeanwhile = [good[0]!, line('b', 'container.stop', 'done')];
  t.same(auditFaults(operations, goneMeanwhile), [], 'a gateway repeated what was done to what is gone');
  t.end();
});

t.test('a lost line, a second one, and one that says something else are faults', (t) => {
  t.match(auditFaults(operations, good.slice(1)), ['stop a was answered done, and has no line']);
  t.match(auditFaults(operations, good.slice(0, 1)), ['stop b was answered not_found, and has no line']);
  t.match(auditFaults(operations, [...good, { ...good[0]!, id: 'x' }]), ['stop a has 2 lines: 0-1-a, x']);
  const twice = [line('d', 'container.stop', 'done'), line('d', 'container.stop', 'done')];
  t.match(auditFaults(operations, [...good, ...twice]), [/^stop d has 2 lines/]);
  const other = [line('a', 'container.start', 'not_found'), good[1]!];
  t.match(auditFaults(operations, other), [
    /about container.start$/,
    /was answered done, and its line says not_found$/,
  ]);
  t.match(auditFaults(operations, [...good, line('e', 'container.create', 'done')]), [/^list e has a line about/]);
  const foreign = { ...good[0]!, tenant: 't2' as TenantId };
  t.match(auditFaults(operations, [foreign, good[1]!]), [/names t2 and t1-user$/]);
  t.end();
});

t.test('lines of a time that the stream forgot may be missing, and none may come twice', (t) => {
  const forgotten = [{ fromMs: 0, toMs: 1 }];
  t.same(auditFaults(operations, [], forgotten), []);
  t.match(auditFaults(operations, [...good, { ...good[0]!, id: 'x' }], forgotten), [/^stop a has 2 lines/]);
  t.match(auditFaults(operations, good.slice(1), [{ fromMs: 3, toMs: 4 }]), [/^stop a was answered done/]);
  t.end();
});
