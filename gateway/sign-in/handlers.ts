/** Sign-in of people (ADR 43): with an identity provider if one is configured. */
import type { Gate } from '../auth/gate.ts';
import type { Verifier } from '../auth/verifier.ts';
import type { SignInSettings } from '../configuration/sign-in.ts';
import type { Handler, Services } from '../http/call.ts';
import { failure } from '../http/respond.ts';
import type { SigningKeys } from '../keys/signing-keys.ts';
import type { Vault } from '../vault/vault.ts';
import { codeFlow } from './code-flow.ts';
import { Cookies } from './cookies.ts';
import { deviceFlow } from './device.ts';
import { Envelopes } from './envelope.ts';
import { Provider } from './provider.ts';
import { signedInHandlers } from './session-handlers.ts';
import { PersonSessions } from './sessions.ts';

export interface SignInOptions {
  readonly services: Services;
  readonly signingKeys: SigningKeys;
  readonly vault: Vault | undefined;
  readonly gate: Pick<Gate, 'admit' | 'addressOf'>;
  readonly verifier: Pick<Verifier, 'stillGood'>;
  /** Undefined: nobody signs in. */
  readonly settings: SignInSettings | undefined;
  readonly publicUrl: string | undefined;
  readonly lifeMs: number;
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

export function signInHandlers(options: SignInOptions) {
  const { services, signingKeys, vault, gate, verifier, settings, publicUrl, lifeMs, linkFolder } = options;
  const { clock, log } = services;
  const nowMs = (): number => clock.nowMs();
  const cookies = new Cookies(publicUrl);
  const sessions = new PersonSessions({
    services,
    signingKeys,
    gate,
    verifier,
    lifeMs,
    deviceLifeMs: settings?.deviceLifeMs ?? lifeMs,
    hasTwins: cookies.isSecure,
  });
  const canSignIn = settings !== undefined && vault !== undefined;
  const base = publicUrl ?? '';
  const ofAll = signedInHandlers({ base, gate, cookies, sessions, canSignIn, linkFolder, nowMs });
  if (!canSignIn) return { ...nowhere, ...ofAll };
  const provider = new Provider({ settings, clock, log });
  const { rules } = settings;
  const desk = { base, rules, cookies, envelopes: new Envelopes(vault, nowMs), sessions, nowMs };
  const devices = settings.deviceLifeMs === undefined ? devicesNowhere : deviceFlow(desk, provider);
  return { ...codeFlow(desk, provider), ...devices, ...ofAll };
}
