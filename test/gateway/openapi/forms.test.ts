/** Forms of the document that generators of clients need, and clients that check answers. */
import { Ajv2020 } from 'ajv/dist/2020.js';
import t from 'tap';
import { openApiDocument } from '../../../gateway/openapi/document.ts';
import { routes } from '../../../schemas/routes.ts';

interface Media {
  readonly schema: object;
  readonly example?: unknown;
}
interface Part {
  readonly content?: Readonly<Record<string, Media>>;
}
interface Operation {
  readonly operationId: string;
  readonly requestBody?: Part;
  readonly responses: Readonly<Record<string, Part>>;
}
interface Document {
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, object>> };
}

const documentOf = (isClosed: boolean): Document =>
  JSON.parse(JSON.stringify(openApiDocument(routes, '1', isClosed))) as Document;
const [open, closed] = [documentOf(false), documentOf(true)];
const operationsOf = ({ paths }: Document) => Object.values(paths).flatMap((path) => Object.values(path));

function validator({ components }: Document) {
  const ajv = new Ajv2020({ strict: false, validateFormats: false });
  ajv.addSchema({ $id: 'document', components });
  const compiled = new Map<string, ReturnType<typeof ajv.compile>>();
  return (schema: object, value: unknown): string[] => {
    const text = JSON.stringify(schema).replaceAll('"#/components', '"document#/components');
    const validate = compiled.get(text) ?? ajv.compile(JSON.parse(text) as object);
    compiled.set(text, validate);
    return validate(value) ? [] : (validate.errors ?? []).map((fault) => `${fault.instancePath} ${fault.message}`);
  };
}

t.test('every body and every success has an example, which is one of its schema', (t) => {
  const faultsOf = validator(open);
  const faults: string[] = [];
  for (const { operationId, requestBody, responses } of operationsOf(open)) {
    const parts = [requestBody, ...Object.entries(responses).map(([status, part]) => (status < '3' ? part : {}))];
    for (const { content = {} } of parts.filter((part) => part !== undefined)) {
      for (const [type, { schema, example }] of Object.entries(content)) {
        if (!type.endsWith('json')) continue;
        faults.push(...faultsOf(schema, example).map((fault) => `${operationId} ${type} ${fault}`));
        if (example === undefined) faults.push(`${operationId} ${type} has none`);
      }
    }
  }
  t.same(faults, []);
  t.end();
});

/** Schemas below a value, and not what examples and names of fields say. */
function* schemasIn(value: unknown): Generator<Readonly<Record<string, unknown>>, void, void> {
  if (typeof value !== 'object' || value === null) return;
  if (Array.isArray(value)) {
    for (const item of value) yield* schemasIn(item);
    return;
  }
  yield value as Readonly<Record<string, unknown>>;
  for (const [key, item] of Object.entries(value)) {
    if (key === 'example') continue;
    if (key === 'properties') for (const one of Object.values(item as object)) yield* schemasIn(one);
    else yield* schemasIn(item);
  }
}

const named = (document: Document, from: unknown): unknown[] => {
  const found = new Map<string, unknown>();
  const visit = (value: unknown): void => {
    for (const [, name = ''] of JSON.stringify(value).matchAll(/#\/components\/schemas\/(\w+)/g)) {
      if (found.has(name)) continue;
      found.set(name, document.components.schemas[name]);
      visit(document.components.schemas[name]);
    }
  };
  visit(from);
  return [from, ...found.values()];
};

t.test('fields of requests have no default, and no map names its keys by patterns', (t) => {
  const bodies = named(
    open,
    operationsOf(open).map(({ requestBody }) => requestBody ?? {}),
  );
  t.same(
    [...schemasIn(bodies)].filter((schema) => 'default' in schema),
    [],
  );
  for (const document of [open, closed])
    t.same(
      [...schemasIn(document)].filter((schema) => 'patternProperties' in schema),
      [],
    );
  const { properties } = open.components.schemas['ContainerCreate'] as { properties: { env: object } };
  t.match(properties.env, { propertyNames: { pattern: /^\^/ }, additionalProperties: { type: 'string' } });
  t.end();
});

t.test('answers may gain fields and values, and the types of our own client name those of today', (t) => {
  const answers = named(
    open,
    operationsOf(open).map(({ responses }) => responses),
  );
  t.same(
    [...schemasIn(answers)].filter((schema) => schema['additionalProperties'] === false),
    [],
  );
  const operation = ({ paths }: Document) => paths['/api/v2/compute/{id}/status']?.['get']?.responses['200']?.content;
  const media = operation(open)?.['application/json'];
  const data = { ...(media?.example as { data: object }).data, status: 'newer', reason: 'newer', newer: {} };
  const later = { data, newer: 1 };
  t.same(validator(open)(media?.schema ?? {}, later), []);
  t.not(validator(closed)(operation(closed)?.['application/json']?.schema ?? {}, later).length, 0);
  t.end();
});
