/**
 * Runs the token issuer of docs/deploy.md exactly as printed there, with a gateway that has the
 * settings printed beside it.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { repositoryRoot } from '../../../dev/paths.ts';
import { memoryOwner, serveOwner } from '../../gateway/support.ts';
import { runGateway, startGround } from './support.ts';

const page = readFileSync(join(repositoryRoot, 'docs/deploy.md'), 'utf8');
const heading = '### Tokens from a key of your own';
const [, rest] = page.split(`${heading}\n`);
if (rest === undefined) throw new Error(`docs/deploy.md has no heading "${heading}"`);
const [part = ''] = rest.split(/^##? /m);
const script = /```js\n([^]*?)```/.exec(part)?.[1] ?? '';
const shown = Object.fromEntries(
  [...part.matchAll(/^(AUTH_\w+)=(.+)$/gm)].map(([, name = '', value = '']) => [name, value]),
);

const ground = await startGround(t);
serveOwner(ground.nc, memoryOwner());

t.test('the gateway accepts its tokens, and a scope opens the operator API', async (t) => {
  const folder = t.testdir({ 'issuer.mjs': script });
  const mint = (...words: string[]): string =>
    execFileSync(process.execPath, ['issuer.mjs', ...words], { cwd: folder, encoding: 'utf8' }).trim();
  const tenant = mint('acme', 'alice', '3600');
  const operator = mint('operator', 'olga', '900', 'operator');
  const expired = mint('acme', 'alice', '-60');
  t.notMatch(readFileSync(join(folder, 'jwks.json'), 'utf8'), '"d"', 'no private key is published');

  t.equal(shown['AUTH_JWKS_FILE'], '/etc/longshore/jwks.json');
  const published = join(folder, 'published.json');
  writeFileSync(published, readFileSync(join(folder, 'jwks.json')));
  const gateway = await runGateway(t, ground, { env: { ...shown, AUTH_JWKS_FILE: published } });
  const statusOf = async (path: string, token: string): Promise<number> => {
    const response = await fetch(`${gateway.url}${path}`, { headers: { authorization: `Bearer ${token}` } });
    await response.text();
    return response.status;
  };
  const asked = async (path: string) =>
    Promise.all([tenant, operator, expired, `${tenant.slice(0, -8)}AAAAAAAA`].map((token) => statusOf(path, token)));
  t.same(await asked('/api/v2/compute'), [200, 200, 401, 401]);
  t.same(await asked('/api/v2/operator/hosts'), [403, 200, 401, 401]);
});
