/**
 * Sign-in in a browser: authorization code with PKCE. The way to the provider leaves a sealed
 * cookie in the browser, and only with it the way back is accepted; the provider accepts a code
 * once.
 */
import { randomBytes } from 'node:crypto';
import type { TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { isCrossSite } from '../auth/credentials.ts';
import type { Call, HandlerOf } from '../call.ts';
import { seeOther } from '../http/html.ts';
import { forbidden } from '../http/refusals.ts';
import { failure, type Result } from '../http/respond.ts';
import { localPath } from './cookies.ts';
import { grantsOf, type Grant, type ProviderClaims } from './mapping.ts';
import { tenantsPage } from './pages.ts';
import type { Provider } from './provider.ts';
import { away, chosenFromMs, noTenant, refusalOf, subjectOf, type Desk } from './desk.ts';
import { minutes } from '../../schemas/limits/units.ts';

/** Time from the redirect to the provider to the person's return. */
const signInMs = 10 * minutes;
/** Browsers keep cookies of 4096 bytes, with name and attributes. */
const signInCookieBytes = 3800;

const secret = (): string => randomBytes(32).toString('base64url');

const notHere = failure(
  'bad_request',
  'this sign-in was not begun in this browser, or more than ten minutes ago; sign in again',
);
const foreignPath = failure('bad_request', 'return_to must be a path of this server, like /login/session');
const tooMany = failure(
  'forbidden',
  'you are in more tenants than this page can show; open /login?tenant=NAME with the name of one',
);
const tenantLost = failure('forbidden', 'you are not in this tenant; sign in again to see which you are in');

/** The handlers of a gateway where people sign in. */
export function codeFlow(desk: Desk, provider: Provider) {
  const { base, cookies, envelopes, sessions, nowMs } = desk;

  /** With the sign-in's cookie removed. */
  const ended = (result: Result): Result => ({
    ...result,
    headers: [...(result.headers ?? []), 'set-cookie', cookies.endStep()],
  });

  async function finish(
    call: Call,
    { subject, grant, atMs }: { readonly subject: string; readonly grant: Grant; readonly atMs: number },
    returnTo: string,
  ): Promise<Result> {
    const session = await sessions.begin(call, subject, grant, { by: 'browser', atMs });
    if ('code' in session) return session.code === 'forbidden' ? ended(session) : session;
    const kept = cookies.session(session.token, session.expiresAtMs - nowMs());
    return seeOther(returnTo, ...kept, cookies.endStep());
  }

  const login: HandlerOf<'login'> = async ({ query }) => {
    const returnTo = query.return_to === undefined ? `${base}/login/session` : localPath(query.return_to);
    if (returnTo === undefined) return foreignPath;
    const flow = { state: secret(), nonce: secret(), verifier: secret(), returnTo };
    const answer = await provider.loginUrl(`${base}/login/callback`, flow);
    if (answer.kind !== 'ok') return away;
    const kept = { ...flow, tenant: query.tenant ?? null, untilMs: nowMs() + signInMs };
    const sealed = envelopes.seal('flow', kept);
    return sealed.length > signInCookieBytes
      ? failure('bad_request', 'return_to is too long')
      : seeOther(answer.value, cookies.step(sealed, signInMs));
  };

  const callback: HandlerOf<'login.callback'> = async (call) => {
    const { head } = call.exchange;
    const kept = cookies.stepOf(head.headers);
    const flow = kept === undefined ? undefined : envelopes.open('flow', kept);
    if (flow === undefined) return notHere;
    const answer = await provider.redeem(new URL(`${base}/login/callback?${head.query}`), flow);
    switch (answer.kind) {
      case 'unavailable':
        // The cookie stays: the same page, loaded again, may still succeed.
        return away;
      case 'refused':
        return ended(sessions.refuse(call, answer.why, refusalOf(answer.why)));
      case 'ok':
        return choose(call, answer.value, flow);
    }
  };

  async function choose(
    call: Call,
    claims: ProviderClaims,
    { tenant, returnTo }: { readonly tenant: TenantId | null; readonly returnTo: string },
  ): Promise<Result> {
    const subject = subjectOf(claims);
    const all = grantsOf(desk.rules, claims, 'browser');
    const grants = all.filter((grant) => tenant === null || grant.tenant === tenant);
    const [only, ...others] = grants;
    if (only === undefined)
      return ended(
        await sessions.refusePerson(call, subject, 'no tenant', noTenant(subject, tenant), { by: 'browser' }),
      );
    if (others.length === 0) return finish(call, { subject, grant: only, atMs: nowMs() }, returnTo);
    const kept = { subject, grants, returnTo, untilMs: nowMs() + limits.signInChoiceMs };
    const sealed = grants.length > limits.signInTenants ? '' : envelopes.seal('choice', kept);
    if (sealed === '' || sealed.length > signInCookieBytes) return ended(tooMany);
    return seeOther(`${base}/login/tenants`, cookies.step(sealed, limits.signInChoiceMs));
  }

  const choiceOf = ({ exchange }: Call) => {
    const kept = cookies.stepOf(exchange.head.headers);
    return kept === undefined ? undefined : envelopes.open('choice', kept);
  };

  const tenants: HandlerOf<'login.tenants'> = (call) => {
    const choice = choiceOf(call);
    if (choice === undefined) return notHere;
    const names = choice.grants.map(({ tenant }) => tenant);
    return tenantsPage(base, choice.subject, names);
  };

  const chosen: HandlerOf<'login.choose'> = async (call) => {
    const { head } = call.exchange;
    if (isCrossSite(head.method, 'cookie', head.headers)) return forbidden;
    const choice = choiceOf(call);
    if (choice === undefined) return notHere;
    const grant = choice.grants.find(({ tenant }) => tenant === call.params.tenant);
    if (grant === undefined) return tenantLost;
    const used = await sessions.take(call, choice);
    if (used !== undefined) return used.code === 'conflict' ? ended(used) : used;
    return finish(call, { subject: choice.subject, grant, atMs: chosenFromMs(choice) }, choice.returnTo);
  };

  return { login, 'login.callback': callback, 'login.tenants': tenants, 'login.choose': chosen };
}
