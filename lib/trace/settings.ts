/** Destination of spans, by the standard variables of OpenTelemetry. */
import type { Registry } from 'prom-client';
import { choice, number, optionalHttpUrl, optionalText, type Configuration, type Setting } from '../config.ts';
import type { Lifecycle } from '../lifecycle.ts';
import type { Log } from '../log.ts';
import type { Clock } from '../time/clock.ts';
import { limits } from '../../schemas/limits.ts';
import { countSpans, createExporter } from './exporter.ts';
import { createTracer, samplerNames, samplerOf, type Sampler, type Tracer } from './tracer.ts';

type Headers = Readonly<Record<string, string>>;

/** `name=value,name=value`, values percent-encoded; `undefined` if the text is not of this form. */
function parseHeaders(text: string): Headers | undefined {
  const headers: Record<string, string> = {};
  for (const item of text.split(',')) {
    const [, name, value] = /^\s*([!#$%&'*+.^_`|~\w-]+)\s*=\s*([\x21-\x7e]*)\s*$/.exec(item) ?? [];
    if (name === undefined || value === undefined) return undefined;
    try {
      headers[name] = decodeURIComponent(value).replace(/[\r\n\0]/g, '');
    } catch {
      return undefined;
    }
  }
  return headers;
}

const headers: Setting<Headers | undefined> = {
  form: 'name=value,… with percent-encoded values',
  doc: 'Headers of each export of spans, such as `authorization=Bearer%20…`.',
  parse: parseHeaders,
  fallback: { value: undefined },
};

/** Part of the settings of each program. */
export const traceSettings = {
  OTEL_EXPORTER_OTLP_ENDPOINT: optionalHttpUrl(
    'Receiver of OTLP over HTTP, to which spans of traced requests go, at `/v1/traces` below this URL. Without it and OTEL_EXPORTER_OTLP_TRACES_ENDPOINT, nothing is traced.',
  ),
  OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: optionalHttpUrl('The whole URL that spans are sent to.'),
  OTEL_EXPORTER_OTLP_HEADERS: headers,
  OTEL_EXPORTER_OTLP_PROTOCOL: choice('Protocol by which spans are sent.', ['http/json'], 'http/json'),
  OTEL_SERVICE_NAME: optionalText(
    'Name of this program in its spans; default: longshore-gateway, longshore-actors, longshore-host-agent.',
  ),
};

/** Of the gateway, where requests enter. */
export const samplerSettings = {
  OTEL_TRACES_SAMPLER: choice(
    'Which requests are traced. With `parentbased_…`, the flag in the `traceparent` of a client decides.',
    samplerNames,
    'parentbased_always_on',
  ),
  OTEL_TRACES_SAMPLER_ARG: number('Part of the requests that a sampler by ratio traces.', {
    min: 0,
    max: 1,
    fallback: 1,
  }),
};

export const configuredSampler = (given: Configuration<typeof samplerSettings>): Sampler =>
  samplerOf(given.OTEL_TRACES_SAMPLER, given.OTEL_TRACES_SAMPLER_ARG);

const receiverOf = (given: Configuration<typeof traceSettings>): string | undefined => {
  const { OTEL_EXPORTER_OTLP_TRACES_ENDPOINT: whole, OTEL_EXPORTER_OTLP_ENDPOINT: base } = given;
  return whole ?? (base === undefined ? undefined : `${base.replace(/\/+$/, '')}/v1/traces`);
};

export interface TracingParts {
  readonly program: string;
  readonly version: string;
  readonly registry: Registry;
  /** Absent if this program begins no trace of its own. */
  readonly sampler?: Sampler;
  readonly clock: Clock;
  readonly log: Log;
  readonly life: Pick<Lifecycle, 'onStop'>;
}

/**
 * `undefined` if no receiver is configured. Spans that wait when the program ends are still sent.
 */
export function startTracing(given: Configuration<typeof traceSettings>, parts: TracingParts): Tracer | undefined {
  const { program, version, registry, sampler = () => false, clock, log, life } = parts;
  const count = countSpans(registry);
  const url = receiverOf(given);
  if (url === undefined) return undefined;
  const exporter = createExporter({
    url,
    headers: given.OTEL_EXPORTER_OTLP_HEADERS ?? {},
    resource: {
      'service.name': given.OTEL_SERVICE_NAME ?? `longshore-${program}`,
      'service.version': version,
      'process.pid': process.pid,
    },
    count,
    clock,
    log,
  });
  life.onStop({ name: 'traces', deadlineMs: limits.stopConnectionMs, stop: exporter.stop });
  log.info('tracing_started', { url });
  return createTracer({ sampler, clock, onEnd: exporter.take });
}
