import t from 'tap';
import { parseTraceparent, traceIdOf, traceparentOf } from '../../../schemas/wire/trace.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const spanId = '00f067aa0ba902b7';

t.test('a traceparent of version 00, sampled or not', (t) => {
  const text = `00-${traceId}-${spanId}-01`;
  t.same(parseTraceparent(text), { traceId, spanId, isSampled: true });
  t.equal(traceparentOf({ traceId, spanId, isSampled: true }), text);
  t.equal(traceparentOf({ traceId, spanId, isSampled: false }), `00-${traceId}-${spanId}-00`);
  t.match(parseTraceparent(`00-${traceId}-${spanId}-00`), { isSampled: false });
  t.match(parseTraceparent(`00-${traceId}-${spanId}-03`), { isSampled: true }, 'flags that are not known are left out');
  t.equal(traceIdOf(text), traceId);
  t.equal(traceIdOf(undefined), undefined);
  t.end();
});

t.test('later versions may have more at the end', (t) => {
  t.match(parseTraceparent(`cc-${traceId}-${spanId}-01`), { traceId });
  t.match(parseTraceparent(`cc-${traceId}-${spanId}-01-what-comes`), { traceId });
  t.end();
});

const invalid: Readonly<Record<string, string>> = {
  'an empty text': '',
  'the version ff': `ff-${traceId}-${spanId}-01`,
  'a trace of zeros': `00-${'0'.repeat(32)}-${spanId}-01`,
  'a span of zeros': `00-${traceId}-${'0'.repeat(16)}-01`,
  'capital letters': `00-${traceId.toUpperCase()}-${spanId}-01`,
  'more than version 00 has': `00-${traceId}-${spanId}-01-more`,
  'no flags': `00-${traceId}-${spanId}`,
  'a short id': `00-${traceId.slice(1)}-${spanId}-01`,
  'two at once': `00-${traceId}-${spanId}-01, 00-${traceId}-${spanId}-01`,
  'more without a dash': `cc-${traceId}-${spanId}-01x`,
};
for (const [what, text] of Object.entries(invalid)) {
  t.test(`${what} is not valid`, (t) => {
    t.equal(parseTraceparent(text), undefined);
    t.end();
  });
}
