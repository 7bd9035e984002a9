/**
 * A client whose types a public generator makes from the document that gateways serve, with the
 * generator's own defaults: what the API takes compiles, and every value arrives.
 */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import createClient from 'openapi-fetch';
import openapiTypes, { astToString, type OpenAPI3 } from 'openapi-typescript';
import t from 'tap';
import ts from 'typescript';
import { repositoryRoot } from '../../../dev/paths.ts';
import { openApiDocument } from '../../../gateway/openapi/document.ts';
import { routes } from '../../../schemas/routes.ts';
import { temporaryFolder } from '../../support/folder.ts';

t.setTimeout(300_000);

/** A program with smallest bodies, maps, and values of later releases. */
const program = `
import createClient from 'openapi-fetch';
import type { components, paths } from './api';

const api = createClient<paths>({ baseUrl: 'http://longshore.test' });
type Schemas = components['schemas'];

export async function use(id: string): Promise<string> {
  await api.POST('/api/v2/compute', { body: { name: 'web', repository: 'nginx', env: { GREETING: 'hello' } } });
  await api.PUT('/api/v2/compute/{id}/policy', { params: { path: { id } }, body: { restart: 'never' } });
  await api.PUT('/api/v2/compute/{id}/policy', {
    params: { path: { id } },
    body: { health: { http: { port: 80 } } },
  });
  await api.PUT('/api/v2/compute/{id}/secrets', {
    params: { path: { id } },
    body: { env: { DB: 'db' }, files: { '/run/key': { secret: 'key' } } },
  });
  await api.POST('/api/v2/keys', {
    params: { header: { 'Idempotency-Key': 'k' } },
    body: { name: 'ci', scopes: ['read'] },
  });
  const { data, error } = await api.GET('/api/v2/compute/{id}', { params: { path: { id } } });
  if (error !== undefined) return error.error;
  const later: Schemas['Container']['status'] = 'a status of a later release';
  const greeting: string | undefined = data.data.env['GREETING'];
  return later + greeting;
}

export async function why(id: string): Promise<string | undefined> {
  const { error } = await api.POST('/api/v2/compute/{id}/start', { params: { path: { id } } });
  return error?.error === 'conflict' ? error.reason : undefined;
}
`;

const document = JSON.parse(JSON.stringify(openApiDocument(routes, '1.0.0'))) as OpenAPI3;

t.test('a program that sends what the API takes compiles', async (t) => {
  const folder = temporaryFolder(t);
  const types = astToString(await openapiTypes(document, { silent: true }));
  writeFileSync(join(folder, 'api.d.ts'), types);
  writeFileSync(join(folder, 'program.ts'), program);
  const compiled = ts.createProgram([join(folder, 'program.ts')], {
    strict: true,
    noEmit: true,
    skipLibCheck: false,
    noUncheckedIndexedAccess: true,
    target: ts.ScriptTarget.ES2022,
    module: ts.ModuleKind.ESNext,
    moduleResolution: ts.ModuleResolutionKind.Bundler,
    types: [],
    paths: { 'openapi-fetch': [join(repositoryRoot, 'node_modules/openapi-fetch')] },
  });
  const faults = ts
    .getPreEmitDiagnostics(compiled)
    .filter(({ file }) => file === undefined || file.fileName.startsWith(folder))
    .map(({ messageText }) => ts.flattenDiagnosticMessageText(messageText, '\n'));
  t.same(faults, []);
});

t.test('every value of a body arrives', async (t) => {
  const bodies: unknown[] = [];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      bodies.push(JSON.parse(Buffer.concat(parts).toString()));
      response.writeHead(200, { 'content-type': 'application/json' }).end('{"data":null}');
    });
  }).listen(0, '127.0.0.1');
  t.teardown(() => void server.close());
  await once(server, 'listening');
  const { port } = server.address() as AddressInfo;
  const api = createClient<Record<string, never>>({ baseUrl: `http://127.0.0.1:${port}` }) as unknown as {
    PUT(path: string, options: object): Promise<unknown>;
  };
  const body = { env: { DB: 'db', 'with.dots': 'x' }, files: { '/run/key': { secret: 'key', mode: 256 } } };
  await api.PUT('/api/v2/compute/{id}/secrets', { params: { path: { id: 'one' } }, body });
  t.same(bodies, [body]);
});
