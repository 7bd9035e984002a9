/** A provider that speaks the protocol, and makes the mistakes that a test asks for. */
import { createServer, type IncomingMessage } from 'node:http';
import type { AddressInfo } from 'node:net';
import { SignJWT, UnsecuredJWT } from 'jose';
import type { Test } from 'tap';
import { createKey } from '../../../gateway/tokens.ts';

export interface Mistakes {
  /** Claims of the ID token that are other ones; undefined leaves one out. */
  readonly claims?: Readonly<Record<string, unknown>>;
  /** `none`: no signature. `stranger`: that of a key that is not published. */
  readonly signature?: 'none' | 'stranger';
  /** In place of the tokens. */
  readonly answer?: { readonly status: number; readonly body: string };
  /** Added to what the provider says of itself. */
  readonly metadata?: Readonly<Record<string, unknown>>;
}

export interface WrongProvider {
  readonly issuer: string;
  /** Mistakes in the next sign-in. */
  mistakes: Mistakes;
  /** The nonce of the last visit. */
  nonce: string;
  /** True once a person has signed in for the command line that asks. */
  isConfirmed: boolean;
}

async function bodyOf(request: IncomingMessage): Promise<string> {
  let text = '';
  for await (const chunk of request) text += String(chunk);
  return text;
}

export async function startWrongProvider(t: Test): Promise<WrongProvider> {
  const [key, stranger] = await Promise.all([createKey('RS256'), createKey('RS256')]);
  const used = new Set<string>();
  const tokenOf = async (nonce: string | undefined): Promise<string> => {
    const nowS = Math.floor(Date.now() / 1000);
    const all = { iss: issuer, aud: 'longshore', sub: 'alice', groups: ['acme'], nonce };
    const claims = JSON.parse(
      JSON.stringify({ ...all, iat: nowS, exp: nowS + 60, ...provider.mistakes.claims }),
    ) as Record<string, unknown>;
    if (provider.mistakes.signature === 'none') return new UnsecuredJWT(claims).encode();
    const signer = provider.mistakes.signature === 'stranger' ? stranger : key;
    return new SignJWT(claims).setProtectedHeader({ alg: 'RS256', kid: key.kid }).sign(signer.privateKey);
  };
  const server = createServer((request, response) => {
    const send = (status: number, body: string): void =>
      void response.writeHead(status, { 'content-type': 'application/json' }).end(body);
    const answer = async (): Promise<void> => {
      const isDevice = new URLSearchParams(await bodyOf(request)).has('device_code');
      switch (new URL(request.url ?? '/', issuer).pathname) {
        case '/.well-known/openid-configuration':
          return send(200, JSON.stringify({ ...metadata, ...provider.mistakes.metadata }));
        case '/jwks':
          return send(200, JSON.stringify({ keys: [key.jwk] }));
        case '/device': {
          const codes = { device_code: 'd', user_code: 'WDJB-MJHT', expires_in: 600, interval: 1 };
          const page = { verification_uri: `${issuer}/go`, verification_uri_complete: `${issuer}/go?code=WDJB-MJHT` };
          return send(200, JSON.stringify({ ...codes, ...page }));
        }
        case '/token': {
          const { status, body } = provider.mistakes.answer ?? { status: 200, body: '' };
          if (body !== '') return send(status, body);
          if (isDevice && !provider.isConfirmed) return send(400, '{"error":"authorization_pending"}');
          if (!isDevice && used.has(provider.nonce)) return send(400, '{"error":"invalid_grant"}');
          if (!isDevice) used.add(provider.nonce);
          const tokens = {
            access_token: 'opaque',
            token_type: 'Bearer',
            id_token: await tokenOf(isDevice ? undefined : provider.nonce),
          };
          return send(200, JSON.stringify(tokens));
        }
        default:
          return send(404, '{}');
      }
    };
    void answer();
  });
  await new Promise<void>((resolve) => void server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    server.close();
  });
  const issuer = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  const metadata = {
    issuer,
    authorization_endpoint: `${issuer}/authorize`,
    token_endpoint: `${issuer}/token`,
    device_authorization_endpoint: `${issuer}/device`,
    jwks_uri: `${issuer}/jwks`,
    response_types_supported: ['code'],
    id_token_signing_alg_values_supported: ['RS256'],
    authorization_response_iss_parameter_supported: true,
  };
  const provider: WrongProvider = { issuer, mistakes: {}, nonce: '', isConfirmed: false };
  return provider;
}
