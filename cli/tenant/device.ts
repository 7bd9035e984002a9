/** Sign-in at the server's identity provider, confirmed in any browser (RFC 8628). */
import { sleep } from '../../lib/time/backoff.ts';
import { oneLine } from '../../schemas/visible.ts';
import { isSessionId } from '../../schemas/api/keys/session-id.ts';
import { createApi, dataOf, type Api, type Schemas } from '../client/api.ts';
import { ApiError, InterruptedError } from '../client/errors.ts';
import type { Terminal } from '../context.ts';
import { Refused } from '../terminal/errors.ts';
import { askLine } from '../terminal/input.ts';

/** RFC 8628 section 3.5 */
const slowDownS = 5;

type Begun = Schemas['DeviceSignIn'];

/** `undefined` if the server has no sign-in in a browser. */
async function begin(api: Api): Promise<Begun | undefined> {
  try {
    return await dataOf(api.POST('/api/v2/sign-in/device', { body: {} }));
  } catch (error) {
    if (!(error instanceof ApiError)) throw error;
    const cannot = error.code === 'conflict' && error.reason === 'unsupported';
    if (cannot || error.code === 'not_found') return undefined;
    throw error;
  }
}

/**
 * Signs in, and returns the token of the session; `undefined` if the server has no sign-in.
 * @param wanted the tenant; `undefined` asks a person who is in several
 */
export async function signInByDevice(
  { stdin, stderr, signal }: Terminal,
  server: string,
  wanted: string | undefined,
): Promise<string | undefined> {
  const api = createApi({ server, signal });
  const begun = await begin(api);
  if (begun === undefined) return undefined;
  const at = begun.verification_uri_complete ?? begun.verification_uri;
  stderr.write(`Open ${oneLine(at)} in a browser, and confirm the code ${oneLine(begun.user_code)}\n`);
  let { handle, interval } = begun;
  let tenant = wanted;
  for (;;) {
    await sleep(interval * 1000, signal);
    if (signal.aborted) throw new InterruptedError();
    const body = { handle, ...(tenant === undefined ? {} : { tenant }) };
    const answer = await dataOf(api.POST('/api/v2/sign-in/device/token', { body }));
    switch (answer.status) {
      case 'done':
        return answer.token;
      case 'choose': {
        const names = answer.tenants.join(', ');
        if (!stdin.isTTY) throw new Refused(`you are in several tenants: choose one with --tenant (${names})`);
        tenant = await askLine(`Tenant (${names}): `);
        handle = answer.handle;
        interval = 0;
        break;
      }
      case 'slow_down':
        interval += slowDownS;
        break;
      case 'pending':
        break;
      case 'expired':
        throw new Refused('the code was not confirmed in time; sign in again');
      case 'denied':
        throw new Refused('the sign-in was refused in the browser');
    }
  }
}

/** Ends the session at the server; false if the token is not of one. */
export async function endSession(
  { signal }: Terminal,
  { server, token, tokenId }: { readonly server: string; readonly token: string; readonly tokenId: unknown },
): Promise<boolean> {
  if (typeof tokenId !== 'string' || !isSessionId(tokenId)) return false;
  const { response, error } = await createApi({ server, token, signal }).POST('/logout', { redirect: 'manual' });
  if (response.status !== 303) throw new ApiError(response, error);
  return true;
}
