/**
 * Sign-in of a command line (RFC 8628): it shows a code, a person confirms it in any browser, and
 * the command line asks until that is done. What must be remembered goes back and forth sealed.
 * The client that began it gets the session, so a link from a stranger is an attack (RFC 8628
 * 5.4): the link leads to a page of ours first, rules decide what such a session may do, and it is
 * shorter.
 */
import { timestamp } from '../../lib/time/timestamp.ts';
import type { DeviceSignIn, DeviceToken } from '../../schemas/api/keys/session.ts';
import { limits } from '../../schemas/limits.ts';
import type { Call, HandlerOf } from '../call.ts';
import { conflict, failure, invalid, ok, type Result } from '../http/respond.ts';
import type { Kept } from './envelope.ts';
import { away, chosenFromMs, noTenant, refusalOf, subjectOf, type Desk } from './desk.ts';
import { grantsOf } from './mapping.ts';
import { devicePage } from './pages.ts';
import type { Provider } from './provider.ts';
import { minutes } from '../../schemas/limits/units.ts';

/** Time in which a sign-in by device must be finished. */
const deviceSignInMs = 30 * minutes;

/** Of RFC 8628 section 3.2. */
const defaultIntervalS = 5;

const said = (token: DeviceToken): Result => ok(token);

const statuses: Readonly<Record<string, 'pending' | 'slow_down' | 'expired' | 'denied'>> = {
  authorization_pending: 'pending',
  slow_down: 'slow_down',
  expired_token: 'expired',
  access_denied: 'denied',
};

const oldLink = failure('bad_request', 'this link is too old, or not whole; run "longshore login" again');

function noTenantHere(subject: string, canByBrowser: boolean): string {
  if (!canByBrowser) return noTenant(subject, null);
  return 'what you may do is not open to a command line that signs in; sign in in a browser, or use an API token';
}

/** Links of a page of ours lead nowhere else. */
const isWeb = (url: string): boolean => URL.canParse(url) && /^https?:$/.test(new URL(url).protocol);

export function deviceFlow(desk: Desk, provider: Provider) {
  const { base, envelopes, sessions, nowMs } = desk;

  const begin: HandlerOf<'sign_in.device'> = async (call) => {
    const answer = await provider.beginDevice();
    if (answer.kind === 'unavailable') return away;
    if (answer.kind === 'refused') {
      return conflict('unsupported', 'the identity provider has no sign-in for devices: sign in with a token');
    }
    const { device_code: deviceCode, interval, expires_in, user_code, verification_uri } = answer.value;
    const lifeMs = Math.min(expires_in * 1000, deviceSignInMs);
    const continueAt = answer.value.verification_uri_complete ?? verification_uri;
    if (!isWeb(continueAt)) return away;
    const from = sessions.addressOf(call);
    const atMs = nowMs();
    const untilMs = atMs + lifeMs;
    const ask = envelopes.seal('ask', { from, userCode: user_code, continueAt, atMs, untilMs });
    const signIn: DeviceSignIn = {
      handle: envelopes.seal('device', { deviceCode, from, untilMs }),
      user_code,
      verification_uri,
      verification_uri_complete: `${base}/login/device?ask=${ask}`,
      expires_in: Math.floor(lifeMs / 1000),
      interval: interval ?? defaultIntervalS,
    };
    return ok(signIn);
  };

  const show: HandlerOf<'login.device'> = (call) => {
    const ask = envelopes.open('ask', call.query.ask);
    return ask === undefined ? oldLink : devicePage(ask, sessions.addressOf(call), nowMs());
  };

  const token: HandlerOf<'sign_in.device_token'> = async (call) => {
    const { handle, tenant } = call.body;
    const choice = envelopes.open('device_choice', handle);
    if (choice !== undefined) return choose(call, choice, tenant);
    const device = envelopes.open('device', handle);
    if (device === undefined) return said({ status: 'expired' });
    const answer = await provider.pollDevice(device.deviceCode);
    if (answer.kind === 'unavailable') return away;
    if (answer.kind === 'refused') {
      const status = statuses[answer.why];
      return status === undefined ? sessions.refuse(call, answer.why, refusalOf(answer.why)) : said({ status });
    }
    const subject = subjectOf(answer.value);
    const { from } = device;
    const grants = grantsOf(desk.rules, answer.value, 'device');
    if (grants.length === 0) {
      const canByBrowser = grantsOf(desk.rules, answer.value, 'browser').length > 0;
      const message = noTenantHere(subject, canByBrowser);
      return sessions.refusePerson(call, subject, 'no tenant', message, { by: 'device', from });
    }
    return choose(call, { subject, grants, from, untilMs: nowMs() + limits.signInChoiceMs }, tenant);
  };

  async function choose(call: Call, choice: Kept<'device_choice'>, wanted: string | undefined): Promise<Result> {
    const { subject, grants, from } = choice;
    const [only, ...others] = wanted === undefined ? grants : grants.filter(({ tenant }) => tenant === wanted);
    if (only === undefined) {
      const names = grants.map(({ tenant }) => tenant).slice(0, limits.signInTenants);
      return invalid({ tenant: [`must be one of yours: ${names.join(', ')}`] });
    }
    if (others.length > 0) {
      const tenants = grants.map(({ tenant }) => tenant);
      return said({ status: 'choose', tenants, handle: envelopes.seal('device_choice', choice) });
    }
    const used = grants.length === 1 ? undefined : await sessions.take(call, choice);
    if (used !== undefined) return used;
    const session = await sessions.begin(call, subject, only, { by: 'device', atMs: chosenFromMs(choice), from });
    if ('code' in session) return session;
    const { token: text, tenant, expiresAtMs } = session;
    return said({ status: 'done', tenant, token: text, expires_at: timestamp(expiresAtMs) });
  }

  return { 'login.device': show, 'sign_in.device': begin, 'sign_in.device_token': token };
}
