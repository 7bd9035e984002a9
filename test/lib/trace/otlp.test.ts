import t from 'tap';
import { encodeSpans } from '../../../lib/trace/otlp.ts';

// As @opentelemetry/otlp-transformer 0.220.0 writes the same span, but for its empty lists, counts
// of zero and flags, which are optional.
const asTheLibraryWrites = {
  resourceSpans: [
    {
      resource: {
        attributes: [
          { key: 'service.name', value: { stringValue: 'longshore-gateway' } },
          { key: 'process.pid', value: { intValue: 7 } },
        ],
      },
      scopeSpans: [
        {
          scope: { name: 'longshore' },
          spans: [
            {
              traceId: '0af7651916cd43dd8448eb211c80319c',
              spanId: 'b7ad6b7169203331',
              parentSpanId: '00f067aa0ba902b7',
              traceState: 'vendor=1',
              name: 'POST /api/v2/compute',
              kind: 2,
              startTimeUnixNano: '1700000000001000000',
              endTimeUnixNano: '1700000000002500000',
              attributes: [
                { key: 'http.route', value: { stringValue: '/api/v2/compute' } },
                { key: 'http.response.status_code', value: { intValue: 503 } },
                { key: 'ratio', value: { doubleValue: 0.5 } },
              ],
              status: { code: 2 },
            },
          ],
        },
      ],
    },
  ],
};

t.test('spans are as the library of OpenTelemetry writes them', (t) => {
  const span = {
    traceId: '0af7651916cd43dd8448eb211c80319c',
    spanId: 'b7ad6b7169203331',
    parentSpanId: '00f067aa0ba902b7',
    traceState: 'vendor=1',
    name: 'POST /api/v2/compute',
    kind: 'server',
    startMs: 1_700_000_000_001,
    endMs: 1_700_000_000_002.5,
    attributes: {
      'http.route': '/api/v2/compute',
      'http.response.status_code': 503,
      'longshore.tenant': undefined,
      ratio: 0.5,
    },
    isError: true,
  } as const;
  const text = encodeSpans([span], { 'service.name': 'longshore-gateway', 'process.pid': 7 });
  t.same(JSON.parse(text), asTheLibraryWrites);
  t.end();
});
