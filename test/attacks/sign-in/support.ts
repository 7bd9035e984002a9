/** Gateways at which people sign in, with a provider that says of a person what a test asks for. */
import { randomBytes } from 'node:crypto';
import { mkdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { decodeJwt, type JWTPayload } from 'jose';
import type { Test } from 'tap';
import { cookieName, twinName } from '../../../gateway/auth/credentials.ts';
import { recordingLog } from '../../gateway/support.ts';
import { runGateway, startGround, startOwnerOn, type RunningGateway } from '../../integration/gateway/support.ts';
import { startWrongProvider } from '../../integration/gateway/sign-in/wrong-provider.ts';
import { temporaryFolder } from '../../support/folder.ts';

const publicUrl = 'https://longshore.test';

export const rules = [
  { claim: 'groups', value: 'acme', tenant: 'acme', scopes: ['read', 'admin'] },
  { claim: 'groups', value: 'beta', tenant: 'beta', scopes: ['read'] },
  { claim: 'groups', value: 'platform', tenant: 'operator', scopes: ['operator'] },
] as const;

interface Request {
  readonly method?: string;
  readonly cookie?: string;
  readonly token?: string;
  readonly body?: object;
  /** The address that the proxy in front says it comes from. */
  readonly address?: string;
  readonly at?: RunningGateway;
}

export interface Seen {
  readonly status: number;
  readonly text: string;
  readonly location: string;
  readonly cookies: readonly string[];
}

/** The header `cookie` with which a browser returns the cookies that it got. */
export const cookiesOf = ({ cookies }: Pick<Seen, 'cookies'>): string =>
  cookies
    .map((cookie) => cookie.split(';')[0] ?? '')
    .filter((pair) => !pair.endsWith('='))
    .join('; ');

/** The token that a sign-in put into the browser. */
export const tokenIn = ({ cookies }: Pick<Seen, 'cookies'>): string =>
  cookies
    .find((cookie) => cookie.startsWith(`${cookieName}=`))
    ?.slice(cookieName.length + 1)
    .split(';')[0] ?? '';
export const twinIn = ({ cookies }: Pick<Seen, 'cookies'>): string =>
  cookies.find((cookie) => cookie.startsWith(`${twinName}=`))?.split(';')[0] ?? '';

export async function startSignIn(t: Test, more: Record<string, string> = {}) {
  const ground = await startGround(t);
  await startOwnerOn(t, ground);
  const provider = await startWrongProvider(t);
  const folder = temporaryFolder(t);
  const links = join(folder, 'links');
  mkdirSync(links);
  const rulesFile = join(folder, 'rules.json');
  const log = recordingLog();
  const vaultKeys = `k1:${randomBytes(32).toString('base64')}`;

  const start = (given: readonly object[] = rules, env: Record<string, string> = {}): Promise<RunningGateway> => {
    writeFileSync(rulesFile, JSON.stringify(given));
    const settings = {
      VAULT_KEYS: vaultKeys,
      PUBLIC_URL: publicUrl,
      SIGN_IN_ISSUER: provider.issuer,
      SIGN_IN_CLIENT_ID: 'longshore',
      SIGN_IN_RULES_FILE: rulesFile,
      SIGN_IN_LINK_FOLDER: links,
      TRUSTED_PROXIES: '127.0.0.1/32',
      RATE_LIMIT_PUBLIC_PER_SECOND: '100000',
      RATE_LIMIT_PUBLIC_BURST: '100000',
    };
    return runGateway(t, ground, { log, env: { ...settings, ...more, ...env } });
  };
  const gateway = await start();

  async function send(
    path: string,
    { method, cookie, token, body, address, at = gateway }: Request = {},
  ): Promise<Seen> {
    const response = await fetch(at.url + path, {
      method: method ?? (body === undefined ? 'GET' : 'POST'),
      redirect: 'manual',
      headers: {
        ...(cookie === undefined ? {} : { cookie }),
        ...(token === undefined ? {} : { authorization: `Bearer ${token}` }),
        ...(body === undefined ? {} : { 'content-type': 'application/json' }),
        'x-forwarded-for': address ?? '198.51.100.7',
      },
      ...(body === undefined ? {} : { body: JSON.stringify(body) }),
    });
    const location = (response.headers.get('location') ?? '').replace(publicUrl, '');
    return { status: response.status, text: await response.text(), location, cookies: response.headers.getSetCookie() };
  }

  /** A sign-in in a browser, up to where the provider sends the person back to. */
  async function begin(sub: string, ...groups: string[]) {
    provider.mistakes = { claims: { sub, groups } };
    const begun = await send('/login');
    const asked = new URL(begun.location).searchParams;
    provider.nonce = asked.get('nonce') ?? '';
    const query = { code: 'c', iss: provider.issuer, state: asked.get('state') ?? '' };
    return { path: `/login/callback?${new URLSearchParams(query).toString()}`, cookie: cookiesOf(begun) };
  }

  /** A person's browser after the provider: signed in, or before the choice of a tenant. */
  async function signIn(sub: string, ...groups: string[]): Promise<Seen> {
    const { path, cookie } = await begin(sub, ...groups);
    return send(path, { cookie });
  }

  const operator = (): Promise<string> => ground.issuer.mint({ tenant_id: 'operator', scope: 'operator' });
  const statusOf = async (request: Request): Promise<number> => (await send('/api/v2/compute', request)).status;
  return { ground, provider, log, links, gateway, start, send, begin, signIn, operator, statusOf };
}

export const claimsOf = (token: string): JWTPayload => decodeJwt(token);
