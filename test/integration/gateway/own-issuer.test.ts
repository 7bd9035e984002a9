/**
 * The token issuer that docs/deploy.md shows, as it stands there, with a gateway that is set up as
 * it says.
 */
import { execFileSync } from 'node:child_process';
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { repositoryRoot } from '../../../dev/paths.ts';
import { memoryOwner, serveOwner } from '../../gateway/support.ts';
import { runGateway, startGround } from './support.ts';

const page = readFileSync(join(repositoryRoot, 'docs/deploy.md'), 'utf8');
const part = page.slice(page.indexOf('### No identity provider'), page.indexOf('## VPN peers'));
const script = /```js\n([^]*?)```/.exec(part)?.[1] ?? '';
const shown = Object.fromEntries(
  [...part.matchAll(/^(AUTH_\w+)=(.+)$/gm)].map(([, name = '', value = '']) => [name, value]),
);

const ground = await startGround(t);
serveOwner(ground.nc, memoryOwner());

t.test('its tokens are good, and their scope opens what it should', async (t) => {
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
