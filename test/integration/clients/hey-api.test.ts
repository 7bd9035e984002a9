/**
 * A client that a second public generator makes from the document that gateways serve, with the
 * generator's own defaults: a program that creates, lists, watches and reads logs compiles, and the
 * client sends what the program gives and reads what comes, a stream by its own operation.
 */
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import { pathToFileURL } from 'node:url';
import { createClient } from '@hey-api/openapi-ts';
import t from 'tap';
import ts from 'typescript';
import { openApiDocument } from '../../../gateway/openapi/document.ts';
import { routes } from '../../../schemas/routes.ts';
import { temporaryFolder } from '../../support/folder.ts';

t.setTimeout(600_000);

const program = `
import { client } from './client/client.gen';
import { containerLogs, containerLogsStream, containerOverview, containerWatch, specCreate } from './client';
import type { LogFrame, WatchFrame } from './client';

const framesIn = <Frame>(text: string): Frame[] =>
  text
    .split('\\n\\n')
    .filter((part) => /^event:/m.test(part))
    .map((part) => {
      const fields = Object.fromEntries(part.split('\\n').map((line) => line.split(/: (.*)/s, 2)));
      return { ...fields, data: JSON.parse(fields['data'] ?? 'null') } as Frame;
    });

export async function use(baseUrl: string): Promise<unknown[]> {
  client.setConfig({ baseUrl, auth: 'secret' });
  const made = await specCreate({
    body: { name: 'web', image: { repository: 'nginx' }, env: { GREETING: 'hello' }, labels: { 'team.x/y': 'a' } },
    headers: { 'Idempotency-Key': 'k' },
  });
  const given = made.data?.data;
  // With dry_run it would be a document.
  if (given === undefined || !('id' in given)) throw new Error('nothing was made');
  const { id } = given;
  const listed = await containerOverview({ query: { label: ['team.x/y=a'], include: ['status'] } });
  const name: string | undefined = listed.data?.data[0]?.container.name;
  const watched = await containerWatch({ query: { name: ['web'] }, parseAs: 'text' });
  const items: WatchFrame[] = framesIn<WatchFrame>(watched.data ?? '');
  const page = await containerLogs({ path: { id }, query: { order: 'desc', limit: 5 } });
  const entries = page.data?.data ?? [];
  const lines = await containerLogsStream({
    path: { id },
    query: { limit: 1 },
    headers: { 'Last-Event-ID': String(entries[0]?.seq) },
    parseAs: 'text',
  });
  const shown = framesIn<LogFrame>(lines.data ?? '').map((frame) =>
    frame.event === 'log' ? frame.data.line : frame.event === 'reset' ? frame.data.reason : frame.event,
  );
  return [name, items.map(({ event }) => event), entries.map(({ line }) => line), shown];
}
`;

interface Asked {
  readonly method: string;
  readonly path: string;
  readonly headers: Readonly<Record<string, string | string[] | undefined>>;
  readonly body: unknown;
}

const id = '01890000-0000-7000-8000-000000000001';
const entry = { ts: '2026-01-01T00:00:00.000Z', stream: 'stdout', line: 'ready', seq: 7 };
const container = { id, name: 'web' };
const json = (value: unknown) => ({ type: 'application/json', text: JSON.stringify(value) });
const stream = (...frames: readonly string[]) => ({
  type: 'text/event-stream',
  text: `retry: 2000\n\n${frames.join('')}event: end\ndata: {"reason":"done"}\n\n`,
});

/** Answers of a gateway, by path. */
const answers: Readonly<Record<string, { readonly type: string; readonly text: string; readonly status?: number }>> = {
  'POST /api/v2/containers': { ...json({ data: container }), status: 201 },
  'GET /api/v2/containers': json({ data: [{ container, labels: {}, project: null }] }),
  'GET /api/v2/containers/watch': stream(`id: 1.2\nevent: item\ndata: ${JSON.stringify({ container })}\n\n`),
  [`GET /api/v2/compute/${id}/logs`]: json({ data: [entry] }),
  [`GET /api/v2/compute/${id}/logs/stream`]: stream(
    'event: reset\ndata: {"reason":"expired","oldest":"8"}\n\n',
    `id: 8\nevent: log\ndata: ${JSON.stringify({ ...entry, line: 'again', seq: 8 })}\n\n`,
  ),
};

async function gateway(t: { teardown(end: () => void): void }) {
  const asked: Asked[] = [];
  const server = createServer((request, response) => {
    const parts: Buffer[] = [];
    request.on('data', (part: Buffer) => parts.push(part));
    request.on('end', () => {
      const { method = '', url = '', headers } = request;
      const text = Buffer.concat(parts).toString();
      asked.push({ method, path: url, headers, body: text === '' ? undefined : JSON.parse(text) });
      const answer = answers[`${method} ${url.replace(/\?.*/, '')}`];
      response.writeHead(answer?.status ?? (answer === undefined ? 404 : 200), {
        'content-type': answer?.type ?? 'application/json',
      });
      response.end(answer?.text ?? '{"error":"not_found"}');
    });
  }).listen(0, '127.0.0.1');
  t.teardown(() => void server.close());
  await once(server, 'listening');
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked };
}

t.test('a program compiles, and says and hears what it should', async (t) => {
  const folder = temporaryFolder(t);
  const input = JSON.parse(JSON.stringify(openApiDocument(routes, '1.0.0'))) as Record<string, unknown>;
  await createClient({
    input,
    output: join(folder, 'client'),
    plugins: ['@hey-api/client-fetch'],
    logs: { level: 'silent' },
  });
  writeFileSync(join(folder, 'program.ts'), program);
  writeFileSync(join(folder, 'package.json'), '{"type":"commonjs"}');
  const compiled = ts.createProgram([join(folder, 'program.ts')], {
    strict: true,
    noUncheckedIndexedAccess: true,
    skipLibCheck: true,
    target: ts.ScriptTarget.ES2022,
    lib: ['lib.es2022.d.ts', 'lib.dom.d.ts', 'lib.dom.iterable.d.ts'],
    module: ts.ModuleKind.CommonJS,
    moduleResolution: ts.ModuleResolutionKind.Node10,
    ignoreDeprecations: '6.0',
    types: [],
    outDir: join(folder, 'made'),
  });
  const { diagnostics } = compiled.emit();
  const faults = [...ts.getPreEmitDiagnostics(compiled), ...diagnostics].map(({ messageText }) =>
    ts.flattenDiagnosticMessageText(messageText, '\n'),
  );
  t.same(faults, []);
  writeFileSync(join(folder, 'made', 'package.json'), '{"type":"commonjs"}');
  const made = (await import(pathToFileURL(join(folder, 'made', 'program.js')).href)) as {
    use(baseUrl: string): Promise<unknown[]>;
  };
  const { url, asked } = await gateway(t);
  t.same(await made.use(url), ['web', ['item', 'end'], ['ready'], ['expired', 'again', 'end']]);
  const body = {
    name: 'web',
    image: { repository: 'nginx' },
    env: { GREETING: 'hello' },
    labels: { 'team.x/y': 'a' },
  };
  t.match(asked[0], { method: 'POST', body, headers: { authorization: 'Bearer secret', 'idempotency-key': 'k' } });
  t.same(asked[0]?.body, body, 'every value arrives');
  t.equal(new URL(asked[1]?.path ?? '', url).searchParams.get('label'), 'team.x/y=a');
  t.equal(asked.at(-1)?.headers['last-event-id'], '7');
});
