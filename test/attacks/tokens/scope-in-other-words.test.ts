/**
 * A thief has a token that its issuer meant to limit, but in another way than `scope` with our
 * words: in capitals, with commas, in `scp` as Okta and Entra ID do, with a word of its own, or
 * with an empty claim. It opens what it names exactly. A token without any scope opens its tenant.
 */
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { createIssuer } from '../../gateway/tokens.ts';
import { memoryOwner, recordingLog, serveOwner } from '../../gateway/support.ts';
import { runGateway, startGround } from '../../integration/gateway/support.ts';
import { temporaryFolder } from '../../support/folder.ts';

const ground = await startGround(t);
serveOwner(ground.nc, memoryOwner());
const folder = temporaryFolder(t);
const other = await createIssuer(join(folder, 'other'), 'https://other.test');
const entryOf = ({ name, audience, jwksFile }: typeof other) => ({
  issuer: name,
  audience,
  algorithms: ['EdDSA'],
  jwks_file: jwksFile,
  tenants: ['*'],
  operators: true,
});
const issuersFile = join(folder, 'issuers.json');
writeFileSync(
  issuersFile,
  JSON.stringify([
    entryOf(ground.issuer),
    { ...entryOf(other), scopes: { claim: 'permissions', ignore: ['access_as_user'] } },
  ]),
);
const log = recordingLog();
const gateway = await runGateway(t, ground, { log, env: { AUTH_ISSUERS_FILE: issuersFile } });

async function statusOf(token: string, path: string): Promise<number> {
  const response = await fetch(gateway.url + path, { headers: { authorization: `Bearer ${token}` } });
  await response.text();
  return response.status;
}

/** Statuses of lists of containers (`read`), peers (`read`, `vpn`) and keys (`admin`). */
const opened = async (token: string): Promise<number[]> =>
  Promise.all(['/api/v2/compute', '/api/forage/peers', '/api/v2/keys'].map((path) => statusOf(token, path)));

const nothing = [403, 403, 403];
const everything = [200, 200, 200];
const vpn = [403, 200, 403];

const rows: readonly (readonly [claims: Record<string, unknown>, expected: readonly number[]])[] = [
  [{}, everything],
  [{ scope: '' }, everything],
  [{ scope: 'openid profile email offline_access address phone' }, everything],
  [{ scope: 'vpn' }, vpn],
  [{ scope: 'VPN' }, nothing],
  [{ scope: 'read,vpn' }, nothing],
  [{ scope: 'vpn\tx' }, nothing],
  [{ scope: 'deploy:x' }, nothing],
  [{ scope: 'openid roles' }, nothing],
  [{ scope: ['vpn'] }, vpn],
  [{ scp: ['vpn'] }, vpn],
  [{ scp: 'openid vpn' }, vpn],
  [{ scopes: 'vpn' }, vpn],
  [{ scope: 'openid', scopes: ['vpn', 'unheard-of'] }, vpn],
  [{ scope: 7 }, [401, 401, 401]],
  [{ scp: { vpn: true } }, [401, 401, 401]],
];

t.test('a token opens what its issuer named exactly, wherever that stands', async (t) => {
  for (const [claims, expected] of rows)
    t.same(await opened(await ground.issuer.mint(claims)), expected, JSON.stringify(claims));
});

t.test('an issuer’s entry names the claim, and the words of other programs', async (t) => {
  t.same(await opened(await other.mint({ scope: 'billing', permissions: ['vpn'] })), vpn);
  t.same(await opened(await other.mint({ permissions: 'access_as_user' })), everything);
  t.same(await opened(await other.mint({ permissions: ['access_as_user', 'mail'] })), nothing);
  for (const permissions of [[], '', ' ', null])
    t.same(await opened(await other.mint({ permissions })), nothing, `empty: ${JSON.stringify(permissions)}`);
  t.same(await opened(await other.mint({ scope: 'vpn' })), everything, 'without the claim');
});

t.test('the operator’s log names each unknown word once', (t) => {
  const told = log.events.filter(({ event }) => event === 'scope_unknown').map(({ fields }) => fields);
  const ofOther = told.filter(({ issuer }) => issuer === other.name).map(({ scope }) => scope);
  t.same(ofOther, ['mail', '']);
  t.equal(told.filter(({ scope }) => scope === 'VPN').length, 1);
  t.end();
});
