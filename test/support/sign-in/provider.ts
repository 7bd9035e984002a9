/** A real OpenID Connect provider, `oidc-provider`, in this process. */
import { createServer, type Server } from 'node:http';
import type { AddressInfo } from 'node:net';
import { Provider } from 'oidc-provider';
import type { Test } from 'tap';

export const clientId = 'longshore';
export const clientSecret = 'a-secret-of-the-client-7Qx2';

/** Claims of the provider about each person, by login; any password opens it. */
export type People = Readonly<Record<string, Readonly<Record<string, unknown>>>>;

export interface RunningProvider {
  readonly issuer: string;
  stop(): Promise<void>;
  /** At the same address, without the earlier sessions. */
  start(): Promise<void>;
}

export interface ProviderOptions {
  readonly redirectUri: string;
  readonly people: People;
  /** True if claims are in the ID token too, and not only at the userinfo endpoint. */
  readonly inIdToken?: boolean;
}

const listenOn = (server: Server, port: number): Promise<void> =>
  new Promise((resolve) => void server.listen(port, '127.0.0.1', resolve));

const closed = (server: Server): Promise<void> =>
  new Promise((resolve) => {
    server.closeAllConnections();
    server.close(() => resolve());
  });

export async function startProvider(t: Test, options: ProviderOptions): Promise<RunningProvider> {
  let server = createServer();
  await listenOn(server, 0);
  const { port } = server.address() as AddressInfo;
  const issuer = `http://127.0.0.1:${port}`;
  const serve = async (): Promise<void> => {
    server.removeAllListeners('request');
    const callback = providerOf(issuer, options).callback();
    server.on('request', (request, response) => void callback(request, response));
  };
  await serve();
  t.teardown(() => closed(server));
  return {
    issuer,
    stop: () => closed(server),
    start: async () => {
      server = createServer();
      await serve();
      await listenOn(server, port);
    },
  };
}

function providerOf(issuer: string, { redirectUri, people, inIdToken = false }: ProviderOptions): Provider {
  const provider = new Provider(issuer, {
    clients: [
      {
        client_id: clientId,
        client_secret: clientSecret,
        redirect_uris: [redirectUri],
        grant_types: ['authorization_code', 'urn:ietf:params:oauth:grant-type:device_code'],
        response_types: ['code'],
      },
    ],
    claims: { openid: ['sub'], profile: ['name', 'groups'], email: ['email', 'email_verified'] },
    conformIdTokenClaims: !inIdToken,
    findAccount: (_context, id) => ({ accountId: id, claims: () => ({ sub: id, ...people[id] }) }),
    features: { devInteractions: { enabled: true }, deviceFlow: { enabled: true } },
    cookies: { keys: ['of-a-test'] },
    pkce: { required: () => true },
  });
  provider.on('server_error', (_context, error) => console.error(error));
  return provider;
}
