import { execFileSync } from 'node:child_process';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { repositoryRoot } from '../../../dev/paths.ts';
import { openApiDocument } from '../../../gateway/openapi/document.ts';
import { createRouter } from '../../../gateway/http/router.ts';
import { components } from '../../../schemas/components.ts';
import { errorStatus, successStatus } from '../../../schemas/errors.ts';
import { errorsOf, routes } from '../../../schemas/routes.ts';
import { temporaryFolder } from '../../support/folder.ts';

interface Schema {
  readonly $ref?: string;
  readonly items?: Schema;
  readonly properties?: { readonly data?: Schema };
}
type Content = Readonly<Record<string, { readonly schema: Schema }>>;
interface Operation {
  readonly operationId: string;
  readonly requestBody?: { readonly content: Content };
  readonly responses: Readonly<Record<string, { readonly content?: Content; readonly headers?: object }>>;
  readonly security?: readonly Readonly<Record<string, readonly string[]>>[];
}

const document = JSON.parse(JSON.stringify(openApiDocument(routes, '1.2.3'))) as {
  readonly info: { readonly version: string };
  readonly paths: Readonly<Record<string, Readonly<Record<string, Operation>>>>;
  readonly components: { readonly schemas: Readonly<Record<string, unknown>> };
};

const operations = Object.values(document.paths).flatMap((path) => Object.values(path));

t.test('it passes the linter’s recommended rules', (t) => {
  const file = join(temporaryFolder(t), 'openapi.json');
  writeFileSync(file, JSON.stringify(document));
  const config = join(repositoryRoot, 'redocly.yaml');
  const output = execFileSync(
    join(repositoryRoot, 'node_modules/.bin/redocly'),
    ['lint', '--format=json', `--config=${config}`, file],
    {
      encoding: 'utf8',
      env: { ...process.env, REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' },
      stdio: ['ignore', 'pipe', 'pipe'],
    },
  );
  const { totals, problems } = JSON.parse(output) as { totals: Record<string, number>; problems: unknown[] };
  t.same(totals, { errors: 0, warnings: 0, ignored: 0 }, JSON.stringify(problems).slice(0, 2000));
  t.end();
});

const inHeaderOrCookie = (...scopes: string[]) => scopes.flatMap((scope) => [{ bearer: [scope] }, { cookie: [scope] }]);
const urlToken = { url_token: [] };
const credentials: Readonly<Record<string, unknown>> = {
  healthz: [],
  'container.create': inHeaderOrCookie('deploy', 'operator'),
  'container.list': inHeaderOrCookie('read', 'deploy', 'operator'),
  'network.ca': inHeaderOrCookie('network:<name>', 'operator:networks', 'operator'),
  'artifact.config': [...inHeaderOrCookie('vpn', 'operator'), urlToken],
  'artifact.pac': [urlToken],
};

t.test('every route is in it, with every status that it may answer, and nothing else is', (t) => {
  t.equal(document.info.version, '1.2.3');
  t.equal(operations.length, routes.length);
  t.equal(new Set(operations.map(({ operationId }) => operationId)).size, routes.length);
  const router = createRouter(routes);
  for (const [template, methods] of Object.entries(document.paths)) {
    for (const [method, { responses, security }] of Object.entries(methods)) {
      const match = router.match(method.toUpperCase(), template.replaceAll(/[{}]/g, ''));
      if (match.kind !== 'route') {
        t.fail(`${method} ${template} is no route`);
        continue;
      }
      const { route } = match;
      for (const code of errorsOf(route)) t.ok(responses[String(errorStatus[code])], `${route.name}: ${code}`);
      const requirements = security?.flatMap((one) => Object.entries(one)) ?? [];
      const isSession = ([scheme, scopes]: [string, readonly string[]]): boolean =>
        scheme !== 'url_token' && scopes.length === 1;
      t.equal(requirements.some(isSession), route.access !== 'public' && route.access !== 'pac', route.name);
      if (route.name in credentials) t.same(security, credentials[route.name], `${route.name}: credentials`);
    }
  }
  t.end();
});

/** True if its schema, or that of its items, is a reference. */
const isNamed = ({ $ref, items }: Schema = {}): boolean => $ref !== undefined || items?.$ref !== undefined;

t.test('every body and every answer has a name in schemas/components.ts', (t) => {
  for (const { operationId, requestBody, responses } of operations) {
    for (const [type, { schema }] of Object.entries(requestBody?.content ?? {})) {
      t.ok(isNamed(schema), `name the body of ${operationId} (${type}) in schemas/components.ts`);
    }
    for (const [status, { content }] of Object.entries(responses)) {
      const schema = content?.['application/json']?.schema;
      if (schema === undefined) continue;
      const answer = isNamed(schema) ? schema : schema.properties?.data;
      t.ok(isNamed(answer), `name the answer ${status} of ${operationId} in schemas/components.ts`);
    }
  }
  t.end();
});

t.test('every name is used, and no named schema is written out a second time', (t) => {
  const text = JSON.stringify(document);
  for (const name of Object.keys(document.components.schemas)) {
    t.ok(text.includes(`"#/components/schemas/${name}"`), `${name}: nothing refers to it`);
  }
  for (const name of Object.keys(components)) {
    const whole = JSON.stringify(document.components.schemas[name]);
    t.equal(text.split(whole).length, 2, `${name} is there once`);
  }
  t.end();
});

t.test('a create may warn, and what can be changed conditionally has an ETag', (t) => {
  const headersOf = (operationId: string, status: number): string[] =>
    Object.keys(operations.find((one) => one.operationId === operationId)?.responses[String(status)]?.headers ?? {});
  const every = ['X-Request-Id', 'Longshore-Version', 'RateLimit-Policy', 'RateLimit'];
  const written = [...every, 'ETag', 'Longshore-Warning', 'Longshore-Generation'];
  t.same(headersOf('container_create', successStatus.created), [...written, 'Location']);
  t.same(headersOf('container_get', successStatus.ok), [...every, 'ETag', 'Longshore-Warning']);
  t.same(headersOf('container_stop', successStatus.ok), written);
  t.same(headersOf('container_status', successStatus.ok), every);
  t.same(headersOf('secret_put', successStatus.created), [...every, 'ETag', 'Location']);
  t.same(headersOf('secret_put', successStatus.ok), [...every, 'ETag']);
  t.end();
});
