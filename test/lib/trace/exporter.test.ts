import t, { type Test } from 'tap';
import { systemClock } from '../../../lib/time/clock.ts';
import { createExporter, traceQueuedSpans, traceBatchSpans, type SpanOutcome } from '../../../lib/trace/exporter.ts';
import type { FinishedSpan } from '../../../lib/trace/tracer.ts';
import { quietLog } from '../../actors/support.ts';
import { startOtlpReceiver, type OtlpReceiver } from '../../support/otlp.ts';
import { until } from '../../support/until.ts';

const span = (name: string): FinishedSpan => ({
  traceId: '0af7651916cd43dd8448eb211c80319c',
  spanId: 'b7ad6b7169203331',
  parentSpanId: undefined,
  traceState: undefined,
  name,
  kind: 'internal',
  startMs: 1_700_000_000_000,
  endMs: 1_700_000_000_001,
  attributes: {},
  isError: false,
});

function begin(t: Test, receiver: Pick<OtlpReceiver, 'url'>) {
  const counts: Record<SpanOutcome, number> = { exported: 0, dropped: 0, failed: 0 };
  const warnings: string[] = [];
  const exporter = createExporter({
    url: `${receiver.url}/v1/traces`,
    headers: { authorization: 'Bearer key' },
    resource: { 'service.name': 'longshore-test' },
    count: (outcome, spans) => {
      counts[outcome] += spans;
    },
    clock: systemClock,
    log: { ...quietLog, warn: (event) => void warnings.push(event) },
  });
  t.teardown(() => exporter.stop());
  return { exporter, counts, warnings };
}

t.test('spans go out in batches, with the configured headers', async (t) => {
  const receiver = await startOtlpReceiver(t);
  const { exporter, counts } = begin(t, receiver);
  const sent = traceBatchSpans + 3;
  for (let number = 0; number < sent; number++) exporter.take(span(`span ${number}`));
  await until(
    'all are there',
    async () => receiver.spans.length,
    (count) => count === sent,
  );
  t.same(
    receiver.requests.map(({ path }) => path),
    ['/v1/traces', '/v1/traces'],
  );
  t.match(receiver.requests[0]?.headers, { authorization: 'Bearer key', 'content-type': 'application/json' });
  t.equal(receiver.spans[0]?.service, 'longshore-test');
  await until(
    'counted',
    async () => counts,
    ({ exported }) => exported === sent,
  );
});

t.test('the end of the program sends what waits', async (t) => {
  const receiver = await startOtlpReceiver(t);
  const { exporter, counts } = begin(t, receiver);
  exporter.take(span('last'));
  await exporter.stop();
  t.equal(receiver.spans[0]?.name, 'last');
  exporter.take(span('later'));
  t.same(counts, { exported: 1, dropped: 1, failed: 0 });
});

t.test('a receiver that does not answer fills the queue, and the rest is dropped', async (t) => {
  const receiver = await startOtlpReceiver(t);
  receiver.answer('silent');
  const { exporter, counts } = begin(t, receiver);
  // The first batch is under way, and the queue holds its bound.
  for (let number = 0; number < traceBatchSpans + traceQueuedSpans + 7; number++) exporter.take(span('one'));
  t.same(counts, { exported: 0, dropped: 7, failed: 0 });
  await exporter.stop();
  t.same(counts, { exported: 0, dropped: 7 + traceQueuedSpans, failed: traceBatchSpans });
});

t.test('a refusal is final, and another status is tried again', async (t) => {
  const receiver = await startOtlpReceiver(t);
  const { exporter, counts, warnings } = begin(t, receiver);
  receiver.answer(400);
  exporter.take(span('refused'));
  await until(
    'refused',
    async () => counts,
    ({ failed }) => failed === 1,
  );
  t.equal(receiver.requests.length, 1);
  t.same(warnings, ['spans_not_exported']);

  receiver.answer(503);
  exporter.take(span('patient'));
  await until(
    'asked',
    async () => receiver.requests,
    ({ length }) => length === 2,
  );
  receiver.answer(200);
  await until(
    'taken',
    async () => receiver.spans,
    ({ length }) => length === 1,
  );
  t.equal(receiver.spans[0]?.name, 'patient');
});

t.test('a receiver that is away costs spans, and nothing else', async (t) => {
  const { exporter, counts, warnings } = begin(t, { url: 'http://127.0.0.1:1' });
  exporter.take(span('lost'));
  await exporter.stop();
  t.same(counts, { exported: 0, dropped: 0, failed: 1 });
  t.same(warnings, ['spans_not_exported']);
});
