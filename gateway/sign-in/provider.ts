/**
 * The identity provider (OpenID Connect). What it says of itself is asked for again when a sign-in
 * begins, unless that was seconds ago; so nobody is sent to a provider that is away. A sign-in that
 * has begun ends by what it said before. Every answer has a deadline and a bound, and none is
 * trusted before openid-client has checked issuer, audience, times, nonce and the signature.
 */
import * as client from 'openid-client';
import type { Clock } from '../../lib/time/clock.ts';
import type { Log } from '../../lib/log.ts';
import { MiB, seconds } from '../../schemas/limits/units.ts';
import { clockToleranceS } from '../auth/claims.ts';
import { lacksClaims, type ProviderClaims, type Rule } from './mapping.ts';

/** The time for each answer of the identity provider, and the size of it. */
const providerMs = 5 * seconds;
const providerBytes = 1 * MiB;
/** A provider that answered in this time is there. */
const providerFreshMs = 10 * seconds;
/** The time between two asks whether it is there. */
const providerRetryMs = 1 * seconds;

/** The provider, and what its people may do here. */
export interface SignInSettings {
  readonly issuer: URL;
  readonly clientId: string;
  /** Undefined for a client that keeps no secret. */
  readonly clientSecret: string | undefined;
  /** As the provider is asked for them. */
  readonly scopes: string;
  readonly rules: readonly Rule[];
  readonly publicUrl: string;
  /** `undefined` if command lines do not sign in. */
  readonly deviceLifeMs: number | undefined;
}

export type Answer<T> =
  | { readonly kind: 'ok'; readonly value: T }
  /** The provider refused, or what it said is refused. */
  | { readonly kind: 'refused'; readonly why: string }
  /** The provider does not answer, or does not take this gateway for its client. */
  | { readonly kind: 'unavailable' };

/** Values that a sign-in makes at its beginning and checks at its end. */
export interface Secrets {
  readonly state: string;
  readonly nonce: string;
  readonly verifier: string;
}

export interface ProviderOptions {
  readonly settings: SignInSettings;
  readonly clock: Clock;
  readonly log: Log;
}

type Ask<T> = (configuration: client.Configuration) => T | Promise<T>;

class TooLarge extends Error {}
class NoIdToken extends Error {}

/** Like `fetch`, for answers of a bounded size. */
async function boundedFetch(url: string, options: client.CustomFetchOptions): Promise<Response> {
  const response = await fetch(url, options as RequestInit);
  const chunks: Uint8Array[] = [];
  let bytes = 0;
  for await (const chunk of response.body ?? []) {
    bytes += (chunk as Uint8Array).byteLength;
    if (bytes > providerBytes) throw new TooLarge(`the answer is larger than ${providerBytes} bytes`);
    chunks.push(chunk as Uint8Array);
  }
  const { status, headers } = response;
  return new Response(chunks.length === 0 ? null : Buffer.concat(chunks), { status, headers });
}

/** `undefined` if there was no answer, or one that says nothing about this sign-in. */
function refusalIn(error: unknown): string | undefined {
  if (error instanceof client.AuthorizationResponseError) return error.error;
  if (error instanceof client.ResponseBodyError) {
    return error.status >= 500 || error.error === 'invalid_client' ? undefined : error.error;
  }
  if (error instanceof NoIdToken) return 'no ID token';
  if (!(error instanceof client.ClientError)) return undefined;
  const { code = 'unknown', cause } = error;
  const isAway =
    code === 'OAUTH_TIMEOUT' || code === 'OAUTH_ABORT' || (cause instanceof Response && cause.status >= 500);
  if (isAway || cause instanceof TooLarge) return undefined;
  const detail = cause instanceof Error ? `: ${cause.message}` : '';
  return `${code}${detail}`;
}

const deviceGrant = 'urn:ietf:params:oauth:grant-type:device_code';

export class Provider {
  readonly #options: ProviderOptions;
  #known: client.Configuration | undefined;
  #knownAtMs = -Infinity;
  #askedAtMs = -Infinity;
  #asking: Promise<client.Configuration | undefined> | undefined;

  constructor(options: ProviderOptions) {
    this.#options = options;
  }

  /** The URL at which a person signs in. */
  async loginUrl(redirectUri: string, { state, nonce, verifier }: Secrets): Promise<Answer<string>> {
    return this.#begin(async (configuration) => {
      const url = client.buildAuthorizationUrl(configuration, {
        redirect_uri: redirectUri,
        scope: this.#options.settings.scopes,
        state,
        nonce,
        code_challenge: await client.calculatePKCECodeChallenge(verifier),
        code_challenge_method: 'S256',
      });
      return url.href;
    });
  }

  /** The provider's claims about the person who comes back with this URL. */
  async redeem(url: URL, { state, nonce, verifier }: Secrets): Promise<Answer<ProviderClaims>> {
    return this.#finish(async (configuration) => {
      const tokens = await client.authorizationCodeGrant(configuration, url, {
        expectedState: state,
        expectedNonce: nonce,
        pkceCodeVerifier: verifier,
        idTokenExpected: true,
      });
      return this.#claimsOf(configuration, tokens);
    });
  }

  /** Begins a sign-in on another device (RFC 8628). */
  async beginDevice(): Promise<Answer<client.DeviceAuthorizationResponse>> {
    return this.#begin((configuration) =>
      client.initiateDeviceAuthorization(configuration, { scope: this.#options.settings.scopes }),
    );
  }

  /** Asks once whether the person has signed in; `refused` with `authorization_pending` if not. */
  async pollDevice(deviceCode: string): Promise<Answer<ProviderClaims>> {
    return this.#finish(async (configuration) => {
      const tokens = await client.genericGrantRequest(configuration, deviceGrant, { device_code: deviceCode });
      return this.#claimsOf(configuration, tokens);
    });
  }

  /** Claims that the ID token lacks may be at the userinfo endpoint. */
  async #claimsOf(
    configuration: client.Configuration,
    tokens: client.TokenEndpointResponse & client.TokenEndpointResponseHelpers,
  ): Promise<ProviderClaims> {
    const claims = tokens.claims();
    if (claims === undefined) throw new NoIdToken();
    const { rules } = this.#options.settings;
    const hasMore = configuration.serverMetadata().userinfo_endpoint !== undefined;
    if (!hasMore || !lacksClaims(rules, claims)) return claims;
    return { ...(await client.fetchUserInfo(configuration, tokens.access_token, claims.sub)), ...claims };
  }

  /** Asks a provider that answers now. */
  async #begin<T>(ask: Ask<T>): Promise<Answer<T>> {
    const { clock } = this.#options;
    const isFresh = clock.monotonicMs() - this.#knownAtMs < providerFreshMs;
    return this.#answer(isFresh ? this.#known : await this.#discovered(), ask);
  }

  /** Asks a provider that answered when the sign-in began, perhaps another gateway. */
  async #finish<T>(ask: Ask<T>): Promise<Answer<T>> {
    return this.#answer(this.#known ?? (await this.#discovered()), ask);
  }

  async #answer<T>(configuration: client.Configuration | undefined, ask: Ask<T>): Promise<Answer<T>> {
    if (configuration === undefined) return { kind: 'unavailable' };
    try {
      return { kind: 'ok', value: await ask(configuration) };
    } catch (error) {
      const why = refusalIn(error);
      if (why !== undefined) return { kind: 'refused', why };
      this.#options.log.warn('sign_in_provider_unavailable', { error });
      return { kind: 'unavailable' };
    }
  }

  /** Undefined if the provider does not answer, or did not a moment ago. */
  async #discovered(): Promise<client.Configuration | undefined> {
    const sinceMs = this.#options.clock.monotonicMs() - this.#askedAtMs;
    if (this.#asking === undefined && sinceMs < providerRetryMs) return undefined;
    return (this.#asking ??= this.#discover().finally(() => {
      this.#asking = undefined;
    }));
  }

  async #discover(): Promise<client.Configuration | undefined> {
    const { settings, clock, log } = this.#options;
    const { issuer, clientId, clientSecret } = settings;
    this.#askedAtMs = clock.monotonicMs();
    try {
      this.#known = await client.discovery(
        issuer,
        clientId,
        { [client.clockTolerance]: clockToleranceS },
        clientSecret === undefined ? client.None() : client.ClientSecretBasic(clientSecret),
        {
          [client.customFetch]: boundedFetch,
          timeout: providerMs / 1000,
          execute: [
            client.enableNonRepudiationChecks,
            // The configuration lets http through for a loopback address alone.
            ...(issuer.protocol === 'http:' ? [client.allowInsecureRequests] : []),
          ],
        },
      );
      this.#knownAtMs = this.#askedAtMs;
      return this.#known;
    } catch (error) {
      log.warn('sign_in_provider_unavailable', { error });
      return undefined;
    }
  }
}
