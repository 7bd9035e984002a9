/** A start loads what its command runs, because to load takes longer than to run. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { repositoryRoot } from '../../../dev/paths.ts';
import { run } from '../../../dev/process/run.ts';
import { farEnd } from '../../cli/client/server.ts';
import { temporaryFolder } from '../../support/folder.ts';

const deadlineMs = 60_000;

/** Writes the URL of each module that is loaded into the file that it names. */
const hooks = `
import { appendFileSync } from 'node:fs';
export async function load(url, context, next) {
  appendFileSync(process.env.LOADED, url + '\\n');
  return next(url, context);
}`;
const register = `import { register } from 'node:module'; register(${JSON.stringify(`data:text/javascript,${encodeURIComponent(hooks)}`)});`;

const web = {
  id: '0197c0de-0000-7000-8000-000000000001',
  name: 'web',
  registry: 'docker.io',
  repository: 'library/web',
  tag: '1',
  digest: null,
  status: 'running',
  host_key: null,
  inserted_at: null,
};

t.test('a start loads the packages that its command needs', async (t) => {
  const folder = temporaryFolder(t);
  const { url } = await farEnd(t, (response, { path }) => {
    const data = path.startsWith('/api/v2/compute?') || path === '/api/v2/compute' ? [web] : [];
    response.writeHead(200, { 'content-type': 'application/json' }).end(JSON.stringify({ data }));
  });
  const claims = Buffer.from('{"sub":"ada"}').toString('base64url');
  const here = { server: url, token: `${Buffer.from('{}').toString('base64url')}.${claims}.x` };
  const config = join(folder, 'config.json');
  writeFileSync(config, JSON.stringify({ current: 'here', profiles: { here } }), { mode: 0o600 });
  // A misspelt word is compared with the known ones by its edit distance.
  const own = ['commander', 'fastest-levenshtein'];
  const api = [...own, 'openapi-fetch'];
  const lines: readonly (readonly [line: string, packages: readonly string[]])[] = [
    ['--version', own],
    ['--help', [...own, 'jose', 'openapi-fetch']],
    ['ps --json', api],
    ['whoami', [...own, 'jose', 'openapi-fetch']],
    ['secret ls', api],
    ['peer ls', api],
    ['host ls', api],
    ['__complete -- logs w', api],
    ['completion bash', own],
  ];
  for (const [at, [line, packages]] of lines.entries()) {
    const loaded = join(folder, String(at));
    writeFileSync(loaded, '');
    const args = [
      '--import',
      `data:text/javascript,${encodeURIComponent(register)}`,
      join(repositoryRoot, 'dist', 'dev', 'longshore.js'),
      ...line.split(' '),
    ];
    const env = { PATH: process.env['PATH'], LONGSHORE_CONFIG: config, LOADED: loaded };
    const { code, stdout, stderr } = await run(process.execPath, args, { deadlineMs, env });
    t.equal(code, 0, `${line}: ${stderr}`);
    t.not(stdout, '', line);
    const found = readFileSync(loaded, 'utf8')
      .split('\n')
      .flatMap((one) => /\/node_modules\/((?:@[^/]+\/)?[^/]+)\//.exec(one)?.[1] ?? []);
    t.same([...new Set(found)].sort(), packages, line);
  }
});

t.test('Node takes no option of a command for its own', async (t) => {
  const folder = temporaryFolder(t);
  const program = join(repositoryRoot, 'dist', 'dev', 'longshore.js');
  const [interpreter = '', ...words] = (readFileSync(program, 'utf8').split('\n')[0] ?? '').slice(2).split(' ');
  const file = join(folder, 'web.env');
  writeFileSync(file, 'NODE_OPTIONS=--require ./none.js\n');
  // Node would refuse the first, and load a module for the second.
  for (const path of [join(folder, 'none.env'), file]) {
    const env = { PATH: process.env['PATH'], HOME: folder };
    const args = [...words, program, 'run', 'web', '--env-file', path];
    t.match(await run(interpreter, args, { deadlineMs, env }), { code: 1, stderr: /^no server is known/ }, path);
  }
});
