import t from 'tap';
import { createCauses } from '../../../host-agent/reconcile/causes.ts';
import type { Wanted } from '../../../host-agent/desired/wanted.ts';
import { createTracer, type FinishedSpan } from '../../../lib/trace/tracer.ts';
import type { DesiredContainer } from '../../../schemas/wire/host.ts';
import { quietLog } from '../../actors/support.ts';
import { id, wanted } from '../support/decisions.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const spanId = '00f067aa0ba902b7';
const trace = `00-${traceId}-${spanId}-01`;
const traced = { request_id: 'r-1', trace } as const;

function begin() {
  const ended: FinishedSpan[] = [];
  const lines: unknown[] = [];
  let now: Wanted = { want: 'ignored' };
  const clock = { nowMs: () => 1_700_000_000_000, monotonicMs: () => 0 };
  const causes = createCauses({
    workload: { wanted: () => now },
    tracer: createTracer({ sampler: () => true, clock, onEnd: (span) => ended.push(span) }),
    log: { ...quietLog, info: (event, fields) => void lines.push({ event, ...fields }) },
  });
  return {
    causes,
    ended,
    lines,
    apply: (changes: Partial<DesiredContainer> | undefined, from: 'disk' | 'owners' = 'owners') => {
      now = changes === undefined ? { want: 'ignored' } : wanted('running', changes);
      causes.heard([id], from);
    },
  };
}

t.test('steps belong to the request from when it is heard until nothing is left to do', (t) => {
  const { causes, ended, lines, apply } = begin();
  t.equal(causes.of(id), undefined);
  causes.asked();
  apply({ generation: 4, cause: traced });
  t.same(lines, [
    { event: 'desired_changed', container: id, desired: 'running', generation: 4, requestId: 'r-1', traceId },
  ]);
  t.same(causes.of(id)?.fields, { requestId: 'r-1', traceId });
  t.match(ended, [{ name: 'sync', traceId }], 'the sync is over');

  causes.settled(id, false);
  t.equal(causes.of(id), undefined, 'what follows belongs to no request');
  const [sync, reconcile] = ended;
  t.match(reconcile, { name: 'reconcile', parentSpanId: spanId, isError: false });
  t.equal(sync?.parentSpanId, reconcile?.spanId);
  apply({ generation: 4, cause: traced });
  t.equal(causes.of(id), undefined, 'the same generation again is no news');
  causes.settled(id, false);
  t.equal(ended.length, 2);
  t.end();
});

t.test('the next request takes over, and a change of no request ends it', (t) => {
  const { causes, ended, apply } = begin();
  apply({ generation: 4, cause: traced });
  apply({ generation: 5, cause: { request_id: 'r-2' } });
  t.same(causes.of(id), { ...causes.of(id), fields: { requestId: 'r-2', traceId: undefined }, trace: undefined });
  t.match(
    ended.map(({ name }) => name),
    ['sync', 'reconcile'],
    'of the first; the second is not traced',
  );
  apply({ generation: 6 });
  t.equal(causes.of(id), undefined);
  t.end();
});

t.test('an agent that starts continues in the trace of the request, without a span of its own', (t) => {
  const { causes, ended, lines, apply } = begin();
  apply({ generation: 4, cause: traced }, 'disk');
  t.match(causes.of(id), { fields: { requestId: 'r-1' }, trace });
  causes.settled(id, false);
  t.same([ended, lines], [[], []]);
  t.end();
});

t.test('a container that fails or leaves ends its span', (t) => {
  const { causes, ended, apply } = begin();
  apply({ generation: 4, cause: traced });
  causes.settled(id, true);
  t.match(ended.at(-1), { name: 'reconcile', isError: true });
  apply({ generation: 5, cause: traced });
  apply(undefined);
  t.match(ended.at(-1), { name: 'reconcile', isError: false });
  t.equal(causes.of(id), undefined);
  t.end();
});
