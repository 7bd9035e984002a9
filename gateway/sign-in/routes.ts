/** Sign-in of people (ADR 43): with an identity provider if one is configured. */
import type { Gate } from '../auth/gate.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Handler, Handlers } from '../call.ts';
import { failure } from '../http/respond.ts';
import type { Vault } from '../vault/vault.ts';
import { codeFlow } from './code-flow.ts';
import { Cookies } from './cookies.ts';
import { deviceFlow } from './device.ts';
import { Envelopes } from './envelope.ts';
import { Provider, type SignInSettings } from './provider.ts';
import { signedInHandlers } from './session-handlers.ts';
import { PersonSessions, type SessionsOptions } from './sessions.ts';

export interface SignInRoutesOptions extends Omit<SessionsOptions, 'deviceLifeMs' | 'hasTwins'> {
  readonly vault: Vault | undefined;
  readonly gate: Pick<Gate, 'admit' | 'addressOf'>;
  readonly clock: Clock;
  /** `undefined` if nobody signs in. */
  readonly settings: SignInSettings | undefined;
  readonly publicUrl: string | undefined;
  readonly linkFolder: string | undefined;
}

const off: Handler = () =>
  failure('not_found', 'sign-in with an identity provider is not set up at this server: use a token');

const noDevices: Handler = () => failure('not_found', 'command lines do not sign in at this server: use an API token');

const devicesNowhere = { 'login.device': noDevices, 'sign_in.device': noDevices, 'sign_in.device_token': noDevices };

const nowhere = {
  login: off,
  'login.callback': off,
  'login.tenants': off,
  'login.choose': off,
  'login.device': off,
  'sign_in.device': off,
  'sign_in.device_token': off,
};

export function signInRoutes(options: SignInRoutesOptions) {
  const { vault, gate, settings, publicUrl, lifeMs, linkFolder, clock, log } = options;
  const nowMs = (): number => clock.nowMs();
  const cookies = new Cookies(publicUrl);
  const sessions = new PersonSessions({
    ...options,
    deviceLifeMs: settings?.deviceLifeMs ?? lifeMs,
    hasTwins: cookies.isSecure,
  });
  const canSignIn = settings !== undefined && vault !== undefined;
  const base = publicUrl ?? '';
  const ofAll = signedInHandlers({ base, gate, cookies, sessions, canSignIn, linkFolder, nowMs });
  if (!canSignIn) return { ...nowhere, ...ofAll } satisfies Partial<Handlers>;
  const provider = new Provider({ settings, clock, log });
  const { rules } = settings;
  const desk = { base, rules, cookies, envelopes: new Envelopes(vault, nowMs), sessions, nowMs };
  const devices = settings.deviceLifeMs === undefined ? devicesNowhere : deviceFlow(desk, provider);
  return { ...codeFlow(desk, provider), ...devices, ...ofAll } satisfies Partial<Handlers>;
}
