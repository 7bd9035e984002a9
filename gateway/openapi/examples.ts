/** Examples of bodies and answers, made from their schemas and from values by name. Pure. */
import { isValues } from '../../lib/values.ts';
import type { Json } from './references.ts';

const at = '2026-01-31T12:00:00.000Z';
const id = '01890000-0000-7000-8000-000000000001';

/** Of fields, by their names. Others have the least that their schema allows. */
const byName: Json = {
  id,
  container_id: id,
  tenant_id: 'acme',
  tenant: 'acme',
  name: 'web',
  project: 'shop',
  aliases: ['web'],
  registry: 'docker.io',
  repository: 'library/nginx',
  tag: '1.29',
  digest: null,
  host_key: null,
  key: 'host-1',
  region: 'eu-1',
  regions: ['eu-1'],
  env: { LOG_LEVEL: 'info' },
  labels: { team: 'shop' },
  ports: ['80/tcp'],
  cpu_limit: '0.5',
  mem_limit: '256m',
  network: 'home',
  endpoint: 'vpn.example.com',
  ipv4_pool: '10.86.0.0/24',
  ipv6_pool: 'fd00:86::/112',
  expires_at: at,
  inserted_at: at,
  updated_at: at,
  ts: at,
  at,
};

const prefix = '#/components/schemas/';

/** Of a schema, and whether the value fits what can be seen at a glance. */
class Examples {
  readonly #schemas: Json;

  constructor(schemas: Json) {
    this.#schemas = schemas;
  }

  resolve(schema: unknown): Json {
    if (!isValues(schema)) return {};
    const ref = schema['$ref'];
    return typeof ref === 'string' ? this.resolve(this.#schemas[ref.replace(prefix, '')]) : schema;
  }

  of(given: unknown, name = ''): unknown {
    const schema = this.resolve(given);
    if ('const' in schema) return schema['const'];
    if (Object.hasOwn(byName, name) && this.#fits(schema, byName[name])) return byName[name];
    if (Array.isArray(schema['enum'])) return schema['enum'][0];
    const options = schema['anyOf'] ?? schema['oneOf'];
    if (Array.isArray(options)) return this.of(options[0], name);
    switch (schema['type']) {
      case 'object':
        return this.#object(schema);
      case 'array':
        return (schema['minItems'] ?? 1) === 0 ? [] : [this.of(schema['items'], name)];
      case 'integer':
      case 'number':
        return schema['minimum'] ?? 1;
      case 'boolean':
        return false;
      case 'null':
        return null;
      case 'string':
        return this.#text(schema, name);
      default:
        return {};
    }
  }

  #object(schema: Json): Json {
    const { properties, propertyNames, additionalProperties: values } = schema;
    if (isValues(properties)) {
      return Object.fromEntries(Object.entries(properties).map(([field, one]) => [field, this.of(one, field)]));
    }
    if (!isValues(values)) return {};
    return { [this.#text(isValues(propertyNames) ? propertyNames : {}, 'key')]: this.of(values) };
  }

  #text({ format, pattern, minLength = 0 }: Json, name: string): string {
    if (format === 'date-time') return at;
    if (typeof pattern !== 'string') return (name === '' ? 'text' : name).padEnd(Number(minLength), 'x');
    const fits = texts.find((text) => new RegExp(pattern, 'u').test(text) && text.length >= Number(minLength));
    return fits ?? name;
  }

  /** Checks the value by the schema's type, pattern and values; other keywords are not checked. */
  #fits(given: unknown, value: unknown): boolean {
    const schema = this.resolve(given);
    const options = schema['anyOf'] ?? schema['oneOf'];
    if (Array.isArray(options)) return options.some((option) => this.#fits(option, value));
    if (Array.isArray(schema['enum'])) return schema['enum'].includes(value);
    const { type, pattern, items } = schema;
    if (value === null) return type === 'null';
    if (Array.isArray(value)) return type === 'array' && value.every((item) => this.#fits(items, item));
    if (isValues(value)) {
      const { properties, propertyNames = {}, additionalProperties: values } = schema;
      const names = Object.keys(value);
      const fitNames = names.every((name) => this.#fits({ type: 'string', ...(propertyNames as Json) }, name));
      const fitValues = Object.values(value).every((item) => this.#fits(values, item));
      return type === 'object' && properties === undefined && isValues(values) && fitNames && fitValues;
    }
    return type === typeof value && (typeof pattern !== 'string' || new RegExp(pattern, 'u').test(String(value)));
  }
}

/** Texts of the forms that patterns ask for; the first that matches is taken. */
const texts: readonly string[] = [
  'web',
  'WEB',
  id,
  'docker.io',
  '80/tcp',
  '0.5',
  '256m',
  '/data/file',
  '10.86.0.2',
  '10.86.0.0/24',
  'fd00:86::/112',
  'sha256:'.padEnd(71, '0'),
  '0'.repeat(64),
  'SIGTERM',
  'A'.repeat(43),
  'A'.repeat(44),
  `U${'A'.repeat(55)}`,
  'vpn.example.com',
  'vpn.example.com:443',
  'team=shop',
  at,
  'read',
  'nofile',
  '60',
  `lsj_host-1_${'A'.repeat(43)}`,
  'A'.repeat(86),
];

interface Content {
  readonly content?: Readonly<Record<string, Json>>;
}
type Operations = Readonly<Record<string, Readonly<Record<string, Json>>>>;

/** Every body and every answer that is a success and JSON has one. */
export function withExamples({ paths, schemas }: { readonly paths: Operations; readonly schemas: Json }): Operations {
  const examples = new Examples(schemas);
  const shown = <T>(part: T): T => {
    const { content } = part as Content;
    if (content === undefined) return part;
    const media = Object.entries(content).map(([type, one]) =>
      /json$/.test(type) ? [type, { ...one, example: examples.of(one['schema']) }] : [type, one],
    );
    return { ...part, content: Object.fromEntries(media) as Json };
  };
  const operationOf = (operation: Json): Json => {
    const { requestBody, responses } = operation as { requestBody?: Json; responses: Readonly<Record<string, Json>> };
    const answers = Object.entries(responses).map(([status, one]) => [status, shown(one)] as const);
    const body = requestBody === undefined ? {} : { requestBody: shown(requestBody) };
    return { ...operation, ...body, responses: Object.fromEntries(answers) };
  };
  return Object.fromEntries(
    Object.entries(paths).map(([path, operations]) => [
      path,
      Object.fromEntries(Object.entries(operations).map(([method, one]) => [method, operationOf(one)])),
    ]),
  );
}
