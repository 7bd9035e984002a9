/** The container that a name stands for in the folder of a Compose file. */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { createApi } from '../../../cli/client/api.ts';
import { findContainer } from '../../../cli/tenant/find.ts';
import { Output } from '../../../cli/terminal/output.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { farEnd } from '../client/server.ts';

const signal = new AbortController().signal;

interface There {
  readonly name: string;
  readonly project?: string | null;
  readonly env?: Readonly<Record<string, string>>;
}

/** @returns the name of what is meant, in a folder with this file */
async function finding(t: Test, compose: string, there: readonly There[]) {
  const items = there.map(({ name, project = null, env = {} }, at) => {
    const id = `01a20000-0000-7000-8000-00000000cafe`.replace(/^../, `0${at}`);
    return { container: { id, name, status: 'running', env }, project };
  });
  const { url } = await farEnd(t, (response, { path }) => {
    const data = path.startsWith('/api/v2/containers') ? items : items.map(({ container }) => container);
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ data }));
  });
  const file = join(temporaryFolder(t), 'compose.yml');
  writeFileSync(file, compose);
  const { stdin } = process;
  const [stdout, stderr] = [new Output(process.stdout), new Output(process.stderr)];
  const terminal = { env: { COMPOSE_FILE: file }, stdin, stdout, stderr, signal, nowMs: () => 0 };
  const context = { api: createApi({ server: url, signal }), terminal };
  return async (name: string): Promise<string> => (await findContainer(context, name)).name;
}

const file = 'name: b\nservices: {db: {image: db}, web: {image: web, container_name: front}, cafe: {image: c}}\n';

t.test('a service is its container, or one of its name that belongs to no project', async (t) => {
  const find = await finding(t, file, [
    { name: 'b-db', project: 'b' },
    { name: 'front', project: 'b' },
  ]);
  t.equal(await find('db'), 'b-db');
  t.equal(await find('b-db'), 'b-db');
  t.equal(await find('web'), 'front');
  const byHand = await finding(t, file, [{ name: 'db' }, { name: 'front' }]);
  t.equal(await byHand('db'), 'db');
  t.equal(await byHand('web'), 'front');
  const both = await finding(t, file, [{ name: 'db' }, { name: 'b-db', project: 'b' }]);
  await t.rejects(both('db'), /"db" is a container, and a service of the Compose file here, b-db/);
});

t.test('a service is never a container of another project', async (t) => {
  const find = await finding(t, file, [
    { name: 'db', project: 'a' },
    { name: 'front', env: { LONGSHORE_APPLY: 'a' } },
    { name: 'other', project: 'a' },
  ]);
  await t.rejects(
    find('db'),
    /^"db" is a service of the Compose file here, and db is a container of the project a: if you mean that one, give its id 00a20000-\S+, or COMPOSE_PROJECT_NAME=a$/,
  );
  await t.rejects(
    find('web'),
    /"web" is a service of the Compose file here, and front is a container of the project a/,
  );
  await t.rejects(find('cafe'), /there is no container "cafe"/, 'nor the end of an id');
  t.equal(await find('other'), 'other', 'the name of no service');
});
