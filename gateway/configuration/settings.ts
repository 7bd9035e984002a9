/** The gateway's settings. docs/configuration.md is generated from this table. */
import {
  choice,
  duration,
  integer,
  list,
  natsServers,
  optionalText,
  renamed,
  text,
  type Configuration,
} from '../../lib/config.ts';
import { logLevels } from '../../lib/log.ts';
import { samplerSettings, traceSettings } from '../../lib/trace/settings.ts';
import { limits } from '../../schemas/limits.ts';
import { days, hours } from '../../schemas/limits/units.ts';
import { algorithms } from '../auth/claims.ts';
import { engineNames } from '../http/engine/engine.ts';
import { defaultTenantClaim } from './issuers.ts';

/** The client that began it may be somebody else than the person: shorter. */
const deviceSessionLifeMs = 4 * hours;
const sessionLifeMaxMs = 30 * days;

export const settings = {
  HTTP_HOST: text('Address that the API listens on.', { fallback: '127.0.0.1' }),
  HTTP_PORT: integer('Port that the API listens on; 0 takes a free one.', { min: 0, max: 65535, fallback: 8080 }),
  HTTP_ENGINE: choice('HTTP server: uWebSockets.js where its binary loads, or node:http.', engineNames, 'uws'),
  NATS_URLS: natsServers('NATS servers.', ['nats://127.0.0.1:4222']),
  NATS_CREDS_FILE: optionalText('Credentials file of a gateway user in the NATS account CP.'),
  NATS_CA_FILE: optionalText('Certificate authority of the NATS servers. If set, TLS is required.'),
  HOSTS_ACCOUNT_FILE: optionalText(
    'File with the JWT of the NATS account HOSTS (`hosts.jwt`), by which the gateway knows the agents that ask for secrets and registry logins; read again when it changes. Absent: this gateway gives hosts none.',
  ),
  LONGSHORE_CLUSTER_ID: renamed(
    optionalText('Id of the cluster to serve; the gateway waits if the servers hold another. Absent: any cluster.'),
    'CLUSTER_ID',
  ),
  REDIS_URL: optionalText(
    'Redis: redis://host:port, or rediss://host:port for TLS. Absent: each gateway limits rates by itself, and learns of revocations by its poll, within a minute.',
  ),
  REDIS_CA_FILE: optionalText('Certificate authority of Redis, with rediss://. Absent: those that Node trusts.'),
  REDIS_USERNAME: optionalText('User at Redis. Absent: `default`.'),
  REDIS_PASSWORD_FILE: optionalText('File with the password of that user.'),
  AUTH_ISSUERS_FILE: optionalText(
    'Token issuers: JSON, a list of {issuer, audience, algorithms, jwks_url or jwks_file, tenant_claim, tenants, operators, scopes: {claim, ignore}}.',
  ),
  AUTH_ISSUER: optionalText('`iss` of the only token issuer, if AUTH_ISSUERS_FILE is absent.'),
  AUTH_AUDIENCE: optionalText('`aud` that tokens of this issuer must have.'),
  AUTH_JWKS_URL: optionalText('URL of the issuer’s JSON Web Key Set.'),
  AUTH_JWKS_FILE: optionalText('File with that key set, in place of AUTH_JWKS_URL; read again when it changes.'),
  AUTH_ALGORITHMS: list('Signature algorithms that the issuer may use: EdDSA, ES256, RS256.', { fallback: algorithms }),
  AUTH_TENANT_CLAIM: text('Claim that holds the tenant.', { fallback: defaultTenantClaim }),
  AUTH_SCOPES_CLAIM: optionalText('Claim that holds the scopes. Absent: `scope`, `scp` and `scopes`.'),
  AUTH_SCOPES_IGNORED: list(
    'Words in the scopes of this issuer’s tokens that are about other programs. Each other word that is no scope opens nothing.',
    { fallback: [] },
  ),
  AUTH_TOKEN_LIFE_MAX: duration(
    'Longest life of a token (`exp` minus `iat`); the gateway refuses others. Revocations are kept for this long, so never raise it while some are in force.',
    { min: 60_000, max: 10 * 365 * 86_400_000, fallback: limits.tokenLifeMaxMs },
  ),
  SIGN_IN_ISSUER: optionalText(
    'URL of the OpenID Connect provider at which people sign in. Absent: nobody signs in, and there are only tokens.',
  ),
  SIGN_IN_CLIENT_ID: optionalText('The gateway’s client id at this provider.'),
  SIGN_IN_CLIENT_SECRET_FILE: optionalText('File with the client’s secret. Absent: the client is a public one.'),
  SIGN_IN_SCOPES: text('Scopes requested from the provider, separated by spaces; `openid` must be among them.', {
    fallback: 'openid profile email',
  }),
  SIGN_IN_RULES_FILE: optionalText(
    'File of the rules that give people their tenants and scopes: JSON, a list of {claim, value, tenant, scopes, device}, or of {claim, scopes, device} for a claim that holds names of tenants.',
  ),
  SIGN_IN_SESSION: duration('Lifetime of a session; then its user signs in again.', {
    min: 60_000,
    max: sessionLifeMaxMs,
    fallback: limits.sessionLifeMs,
  }),
  SIGN_IN_DEVICE: choice(
    'Sign-in of command lines (`longshore login`). `off`: they need an API token.',
    ['on', 'off'],
    'on',
  ),
  SIGN_IN_DEVICE_SESSION: duration('Lifetime of a session of a command line, up to SIGN_IN_SESSION.', {
    min: 60_000,
    max: sessionLifeMaxMs,
    fallback: deviceSessionLifeMs,
  }),
  SIGN_IN_LINK_FOLDER: optionalText(
    'Folder of one-time sign-in links, for development; `npm start` sets it. Refused with NODE_ENV=production.',
  ),
  NODE_ENV: optionalText('`production` refuses what is for development alone.'),
  RATE_LIMIT_TENANT_PER_SECOND: integer('Requests per second of one tenant.', {
    min: 1,
    max: 10_000_000,
    fallback: 1000,
  }),
  RATE_LIMIT_TENANT_BURST: integer('Most requests of one tenant in one burst.', {
    min: 1,
    max: 10_000_000,
    fallback: 5000,
  }),
  RATE_LIMIT_AUTH_FAILURES_PER_SECOND: integer(
    'Wrong tokens per second from one address (IPv6: from one /64). Each signing key, tokens in URLs, one-time links, join tokens and metrics tokens have budgets of their own.',
    {
      min: 1,
      max: 10_000_000,
      fallback: 50,
    },
  ),
  RATE_LIMIT_AUTH_FAILURES_BURST: integer('Wrong tokens from one address in one burst.', {
    min: 1,
    max: 10_000_000,
    fallback: 1000,
  }),
  RATE_LIMIT_PUBLIC_PER_SECOND: integer(
    'Requests per second from one address for revocation lists, /metrics/forage, sign-ins and one-time links, which need no credentials.',
    { min: 1, max: 10_000_000, fallback: 20 },
  ),
  RATE_LIMIT_PUBLIC_BURST: integer('Those requests in one burst.', { min: 1, max: 10_000_000, fallback: 200 }),
  LIMIT_REQUESTS_PER_ADDRESS: integer(
    'Requests from one address (IPv6: from one /64) in flight at a time, without streams and waits.',
    { min: 1, max: limits.requestsInFlight, fallback: 1024 },
  ),
  LIMIT_STREAMS_PER_ADDRESS: integer('Streams and waits from one address (IPv6: from one /64) open at a time.', {
    min: 1,
    max: limits.streams,
    fallback: limits.streamsPerAddress,
  }),
  TRUSTED_PROXIES: list(
    'Networks (CIDR) of the trusted proxies. From them the gateway takes the client’s address out of X-Forwarded-For.',
    { fallback: [] },
  ),
  REQUEST_DEADLINE: duration('Deadline of a request.', {
    min: 100,
    max: 60_000,
    fallback: limits.requestDeadlineMs,
  }),
  PUBLIC_URL: optionalText(
    'URL at which people, phones and VPN servers reach this API, like https://vpn.example.com. Certificates and profiles contain it, and the provider sends people back to it. Absent: the address that the API listens on.',
  ),
  VAULT_KEYS: optionalText(
    'Keys that seal what is secret at rest (secrets, registry logins, VPN keys): lines of `<id>:<base64 of 32 bytes>`, the current key first.',
  ),
  VAULT_KEYS_FILE: optionalText(
    'File with those keys, in place of VAULT_KEYS. With neither, all routes that need them answer 503.',
  ),
  VPN_DEFAULT_NETWORK: text(
    'Network of peers that name none. Set it: Linux has no interface called `default`, so only older releases made a network of that name.',
    { fallback: 'default' },
  ),
  FORAGE_METRICS_TOKEN: optionalText(
    'Bearer token that opens /metrics/forage. Absent: it is open to all who reach it.',
  ),
  METRICS_HOST: text('Address that /metrics listens on.', { fallback: '127.0.0.1' }),
  METRICS_PORT: integer('Port that /metrics listens on; 0 takes a free one.', { min: 0, max: 65535, fallback: 9101 }),
  METRICS_TOKEN_FILE: optionalText(
    'File with the bearer tokens that open /metrics, one a line. Absent: it is open to all who reach it.',
  ),
  ...traceSettings,
  ...samplerSettings,
  LOG_LEVEL: choice(
    'Lowest level of events that are logged; `info` includes a line for every request.',
    logLevels,
    'info',
  ),
  SHUTDOWN_DELAY: duration(
    'Time for which a stopping gateway still listens after /readyz answers 503, so that load balancers notice.',
    {
      min: 0,
      max: 120_000,
      fallback: 250,
    },
  ),
};

export type GatewayConfiguration = Configuration<typeof settings>;
