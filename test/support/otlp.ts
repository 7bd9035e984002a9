/**
 * A receiver of OTLP over HTTP: decodes `ExportTraceServiceRequest` in JSON as opentelemetry-proto
 * describes it, and refuses all else.
 */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Test } from 'tap';
import Type, { type Static } from 'typebox';
import { decoder } from '../../lib/decode.ts';

const strict = <P extends Type.TProperties>(fields: P) => Type.Object(fields, { additionalProperties: false });
const Value = Type.Union([
  strict({ stringValue: Type.String() }),
  strict({ intValue: Type.Integer() }),
  strict({ doubleValue: Type.Number() }),
]);
const Attributes = Type.Array(strict({ key: Type.String(), value: Value }));
const SpanId = Type.String({ pattern: '^(?!0{16})[0-9a-f]{16}$' });
const Nanos = Type.String({ pattern: '^\\d{19}$' });
const Span = strict({
  traceId: Type.String({ pattern: '^(?!0{32})[0-9a-f]{32}$' }),
  spanId: SpanId,
  parentSpanId: Type.Optional(SpanId),
  traceState: Type.Optional(Type.String()),
  name: Type.String({ minLength: 1 }),
  kind: Type.Integer({ minimum: 1, maximum: 5 }),
  startTimeUnixNano: Nanos,
  endTimeUnixNano: Nanos,
  attributes: Attributes,
  status: strict({ code: Type.Optional(Type.Integer({ minimum: 0, maximum: 2 })) }),
});
const decodeRequest = decoder(
  strict({
    resourceSpans: Type.Array(
      strict({
        resource: strict({ attributes: Attributes }),
        scopeSpans: Type.Array(
          strict({ scope: strict({ name: Type.String() }), spans: Type.Array(Span, { minItems: 1 }) }),
        ),
      }),
    ),
  }),
);

export interface ReceivedSpan extends Static<typeof Span> {
  /** `service.name` of the program that sent it. */
  readonly service: unknown;
  readonly values: Readonly<Record<string, unknown>>;
}

const valuesOf = (attributes: Static<typeof Attributes>) =>
  Object.fromEntries(attributes.map(({ key, value }) => [key, Object.values(value)[0] as unknown]));

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request) chunks.push(chunk as Buffer);
  return Buffer.concat(chunks);
}

export interface OtlpReceiver {
  /** A value for OTEL_EXPORTER_OTLP_ENDPOINT. */
  readonly url: string;
  readonly spans: readonly ReceivedSpan[];
  readonly requests: readonly { readonly path: string; readonly headers: IncomingMessage['headers'] }[];
  /** Later requests are answered with this status; `silent`: not at all. */
  answer(status: number | 'silent'): void;
}

export async function startOtlpReceiver(t: Test): Promise<OtlpReceiver> {
  const spans: ReceivedSpan[] = [];
  const requests: { path: string; headers: IncomingMessage['headers'] }[] = [];
  let status: number | 'silent' = 200;
  const take = async (request: IncomingMessage): Promise<number | 'silent'> => {
    const body = await bodyOf(request);
    requests.push({ path: request.url ?? '', headers: request.headers });
    if (status !== 200) return status;
    try {
      for (const { resource, scopeSpans } of decodeRequest(body).resourceSpans) {
        const service = valuesOf(resource.attributes)['service.name'];
        for (const span of scopeSpans.flatMap((scope) => scope.spans))
          spans.push({ ...span, service, values: valuesOf(span.attributes) });
      }
      return 200;
    } catch (error) {
      t.fail(`spans of the wrong form: ${String(error)}`);
      return 400;
    }
  };
  const server = createServer((request, response) => {
    void take(request).then((answered) => {
      if (answered === 'silent') return;
      response.writeHead(answered, { 'content-type': 'application/json' });
      response.end('{}');
    });
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    requests,
    answer: (next) => {
      status = next;
    },
  };
}
