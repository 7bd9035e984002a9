import t from 'tap';
import { createTracer, samplerNames, samplerOf, type FinishedSpan } from '../../../lib/trace/tracer.ts';
import { parseTraceparent } from '../../../schemas/wire/trace.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const spanId = '00f067aa0ba902b7';
const sampled = `00-${traceId}-${spanId}-01`;
const unsampled = `00-${traceId}-${spanId}-00`;
const about = { name: 'GET /x', kind: 'server', attributes: { a: 1 } } as const;

function begin(name: (typeof samplerNames)[number] = 'parentbased_always_on', ratio = 1) {
  const ended: FinishedSpan[] = [];
  const time = { wall: 1_700_000_000_000, steady: 5 };
  const clock = { nowMs: () => Math.floor(time.wall), monotonicMs: () => time.steady };
  const tracer = createTracer({ sampler: samplerOf(name, ratio), clock, onEnd: (span) => ended.push(span) });
  const pass = (ms: number) => {
    time.wall += ms;
    time.steady += ms;
  };
  return { tracer, ended, time, pass };
}

t.test('a request goes on in the trace of its client, and what is below it names its span', (t) => {
  const { tracer, ended, pass } = begin();
  const root = tracer.root({ traceparent: sampled, tracestate: 'vendor=1' }, about);
  pass(2.25);
  const child = tracer.below(root?.trace, { name: 'ask', kind: 'client', attributes: {} });
  pass(1);
  child?.end({ isError: true });
  root?.end({ attributes: { b: 'two' } });

  const [second, first] = ended;
  t.match(first, { traceId, parentSpanId: spanId, traceState: 'vendor=1', attributes: { a: 1, b: 'two' } });
  t.match(second, { traceId, parentSpanId: first?.spanId, traceState: undefined, isError: true });
  t.equal(root?.traceId, traceId);
  t.match(parseTraceparent(root?.trace ?? ''), { traceId, spanId: first?.spanId, isSampled: true });
  t.ok(Math.abs((second?.startMs ?? 0) - (first?.startMs ?? 0) - 2.25) < 0.01, 'in fractions of a millisecond');
  t.ok(Math.abs((first?.endMs ?? 0) - (first?.startMs ?? 0) - 3.25) < 0.01);
  t.end();
});

t.test('without a valid traceparent, a new trace begins, and its tracestate is left out', (t) => {
  const { tracer, ended } = begin();
  tracer.root({}, about)?.end();
  tracer.root({ traceparent: `${sampled}, ${sampled}`, tracestate: 'vendor=1' }, about)?.end();
  t.equal(ended.length, 2);
  for (const span of ended) {
    t.match(span.traceId, /^[0-9a-f]{32}$/);
    t.not(span.traceId, traceId);
    t.match(span, { parentSpanId: undefined, traceState: undefined });
  }
  t.end();
});

t.test('nothing is below a request that is not traced', (t) => {
  const { tracer } = begin();
  t.equal(tracer.root({ traceparent: unsampled }, about), undefined);
  for (const trace of [undefined, unsampled, 'garbage']) t.equal(tracer.below(trace, about), undefined);
  t.end();
});

const decisions: Readonly<Record<(typeof samplerNames)[number], readonly [none: boolean, yes: boolean, no: boolean]>> =
  {
    always_on: [true, true, true],
    always_off: [false, false, false],
    traceidratio: [false, false, false],
    parentbased_always_on: [true, true, false],
    parentbased_always_off: [false, true, false],
    parentbased_traceidratio: [false, true, false],
  };
for (const name of samplerNames) {
  t.test(`the sampler ${name}`, (t) => {
    const { tracer } = begin(name, 0);
    const isTraced = (traceparent?: string): boolean =>
      tracer.root(traceparent === undefined ? {} : { traceparent }, about) !== undefined;
    t.same([isTraced(), isTraced(sampled), isTraced(unsampled)], decisions[name]);
    t.end();
  });
}

t.test('a ratio divides traces by the end of their ids', (t) => {
  const sampler = samplerOf('traceidratio', 0.5);
  t.equal(sampler(`${'f'.repeat(19)}7${'f'.repeat(12)}`, undefined), true);
  t.equal(sampler(`${'0'.repeat(19)}8${'0'.repeat(12)}`, undefined), false);
  t.end();
});

t.test('spans follow a wall clock that is set', (t) => {
  const { tracer, time } = begin();
  const before = tracer.nowMs();
  time.wall += 60_000;
  t.equal(tracer.nowMs() - before, 60_000);
  time.wall += 0.9;
  t.equal(tracer.nowMs() - before, 60_000, 'a fraction of a millisecond is no step');
  t.end();
});
