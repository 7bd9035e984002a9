/**
 * Sign-in of a command line (RFC 8628): it shows a code, a person confirms it in any browser, and
 * the command line asks until that is done. What must be remembered goes back and forth sealed.
 */
import { timestamp } from '../../lib/time/timestamp.ts';
import type { DeviceSignIn, DeviceToken } from '../../schemas/api/keys/session.ts';
import { limits } from '../../schemas/limits.ts';
import type { Call, HandlerOf } from '../http/call.ts';
import { failure, invalid, ok, type Result } from '../http/respond.ts';
import type { Kept } from './envelope.ts';
import { away, noTenant, refusalOf, subjectOf, type Desk } from './desk.ts';
import { grantsOf } from './mapping.ts';
import type { Provider } from './provider.ts';

/** Of RFC 8628 section 3.2. */
const defaultIntervalS = 5;

const said = (token: DeviceToken): Result => ok(token);

const statuses: Readonly<Record<string, 'pending' | 'slow_down' | 'expired' | 'denied'>> = {
  authorization_pending: 'pending',
  slow_down: 'slow_down',
  expired_token: 'expired',
  access_denied: 'denied',
};

export function deviceFlow(desk: Desk, provider: Provider) {
  const { envelopes, sessions, nowMs } = desk;

  const begin: HandlerOf<'sign_in.device'> = async () => {
    const answer = await provider.beginDevice();
    if (answer.kind === 'unavailable') return away;
    if (answer.kind === 'refused') {
      return failure('conflict', 'the identity provider has no sign-in for devices: sign in with a token');
    }
    const { device_code: deviceCode, interval, expires_in, user_code, verification_uri } = answer.value;
    const lifeMs = Math.min(expires_in * 1000, limits.deviceSignInMs);
    const complete = answer.value.verification_uri_complete;
    const signIn: DeviceSignIn = {
      handle: envelopes.seal('device', { deviceCode, untilMs: nowMs() + lifeMs }),
      user_code,
      verification_uri,
      ...(complete === undefined ? {} : { verification_uri_complete: complete }),
      expires_in: Math.floor(lifeMs / 1000),
      interval: interval ?? defaultIntervalS,
    };
    return ok(signIn);
  };

  const token: HandlerOf<'sign_in.device_token'> = async (call) => {
    const { handle, tenant } = call.body;
    const choice = envelopes.open('choice', handle);
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
    const grants = grantsOf(desk.rules, answer.value);
    if (grants.length === 0) return sessions.refusePerson(call, subject, 'no tenant', noTenant(subject, null));
    return choose(call, { subject, grants, returnTo: '', untilMs: nowMs() + limits.signInChoiceMs }, tenant);
  };

  async function choose(call: Call, choice: Kept<'choice'>, wanted: string | undefined): Promise<Result> {
    const { subject, grants } = choice;
    const [only, ...others] = wanted === undefined ? grants : grants.filter(({ tenant }) => tenant === wanted);
    if (only === undefined) {
      const names = grants.map(({ tenant }) => tenant).slice(0, limits.signInTenants);
      return invalid({ tenant: [`must be one of yours: ${names.join(', ')}`] });
    }
    if (others.length > 0) {
      const tenants = grants.map(({ tenant }) => tenant);
      return said({ status: 'choose', tenants, handle: envelopes.seal('choice', choice) });
    }
    const session = await sessions.begin(call, subject, only, 'device');
    if ('code' in session) return session;
    const { token: text, tenant, expiresAtMs } = session;
    return said({ status: 'done', tenant, token: text, expires_at: timestamp(expiresAtMs) });
  }

  return { 'sign_in.device': begin, 'sign_in.device_token': token };
}
