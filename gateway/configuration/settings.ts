/** The gateway's configuration. docs/configuration.md is checked against this table. */
import Type, { type Static } from 'typebox';
import { BlockList, isIP } from 'node:net';
import {
  ConfigurationError,
  choice,
  httpUrlForm,
  integer,
  isHttpUrl,
  list,
  natsServers,
  optionalText,
  readSettingFile,
  text,
} from '../../lib/config.ts';
import type { Configuration } from '../../lib/config.ts';
import { DecodeError, decoder } from '../../lib/decode.ts';
import { logLevels } from '../../lib/log.ts';
import { limits } from '../../schemas/limits.ts';
import { algorithms, type Algorithm, type Issuer } from '../auth/claims.ts';
import type { KeySource } from '../auth/keys.ts';
import type { RedisAccess } from '../auth/redis.ts';
import { isBaseUrl } from '../vpn/render/links.ts';
import { isNetworkName, type NetworkName } from '../../schemas/ids.ts';
import { engineNames } from '../http/engine/engine.ts';
import { parseVaultKeys, type VaultKey } from '../vpn/pki/vault.ts';

export const settings = {
  HTTP_HOST: text('Address the API listens on.', { fallback: '127.0.0.1' }),
  HTTP_PORT: integer('Port the API listens on; 0 takes a free one.', { min: 0, max: 65535, fallback: 8080 }),
  HTTP_ENGINE: choice('HTTP server: uWebSockets.js where its binary loads, or node:http.', engineNames, 'uws'),
  NATS_URLS: natsServers('NATS servers.', ['nats://127.0.0.1:4222']),
  NATS_CREDS_FILE: optionalText('Credentials of a gateway’s user of the account CP.'),
  NATS_CA_FILE: optionalText('Certificate authority of the NATS servers; TLS is then required.'),
  CLUSTER_ID: optionalText('The cluster that must be on these servers; any other is not served. Absent: any.'),
  REDIS_URL: optionalText(
    'Redis: redis://host:port, or rediss://host:port for TLS; absent: rate limits are each gateway’s own, and revocations spread by the poll.',
  ),
  REDIS_CA_FILE: optionalText('Certificate authority of Redis, with rediss://; absent: those that Node trusts.'),
  REDIS_USERNAME: optionalText('User of Redis; absent: `default`.'),
  REDIS_PASSWORD_FILE: optionalText('File with the password of that user.'),
  AUTH_ISSUERS_FILE: optionalText(
    'Token issuers: JSON, a list of {issuer, audience, algorithms, jwks_url or jwks_file, tenant_claim, tenants, operators}.',
  ),
  AUTH_ISSUER: optionalText('The one issuer, where there is no AUTH_ISSUERS_FILE: its `iss`.'),
  AUTH_AUDIENCE: optionalText('Its `aud`.'),
  AUTH_JWKS_URL: optionalText('Where its keys are fetched.'),
  AUTH_JWKS_FILE: optionalText('Or the file they are in; reloaded when it changes.'),
  AUTH_ALGORITHMS: list('Signature algorithms it may use: EdDSA, ES256, RS256.', { fallback: algorithms }),
  AUTH_TENANT_CLAIM: text('The claim that holds the tenant.', { fallback: 'tenant_id' }),
  AUTH_TOKEN_LIFE_MAX_MS: integer(
    'A token that lives longer (`exp` minus `iat`) is refused. Revocations are kept for this long, so never raise it while some are in force.',
    { min: 60_000, max: 10 * 365 * 86_400_000, fallback: limits.tokenLifeMaxMs },
  ),
  RATE_LIMIT_TENANT_PER_SECOND: integer('Requests a second of one tenant.', {
    min: 1,
    max: 10_000_000,
    fallback: 1000,
  }),
  RATE_LIMIT_TENANT_BURST: integer('Requests of one tenant at once.', { min: 1, max: 10_000_000, fallback: 5000 }),
  RATE_LIMIT_AUTH_FAILURES_PER_SECOND: integer(
    'Wrong tokens a second of one address (of an IPv6 network of 64 bits): for each signing key, of URLs, to enrol, for metrics.',
    {
      min: 1,
      max: 10_000_000,
      fallback: 50,
    },
  ),
  RATE_LIMIT_AUTH_FAILURES_BURST: integer('The same, at once.', {
    min: 1,
    max: 10_000_000,
    fallback: 1000,
  }),
  RATE_LIMIT_PUBLIC_PER_SECOND: integer(
    'Requests a second of one address for revocation lists and /metrics/forage, which need no credentials.',
    { min: 1, max: 10_000_000, fallback: 20 },
  ),
  RATE_LIMIT_PUBLIC_BURST: integer('The same, at once.', { min: 1, max: 10_000_000, fallback: 200 }),
  LIMIT_REQUESTS_PER_ADDRESS: integer(
    'Requests of one address (of an IPv6 network of 64 bits) that are answered at a time; streams and waits are not among them.',
    { min: 1, max: limits.requestsInFlight, fallback: 1024 },
  ),
  LIMIT_STREAMS_PER_ADDRESS: integer(
    'Streams and waits of one address (of an IPv6 network of 64 bits) that are open at a time.',
    { min: 1, max: limits.streams, fallback: limits.streamsPerAddress },
  ),
  TRUSTED_PROXIES: list('Networks (CIDR) whose X-Forwarded-For is believed.', { fallback: [] }),
  REQUEST_DEADLINE_MS: integer('How long a request may take.', {
    min: 100,
    max: 60_000,
    fallback: limits.requestDeadlineMs,
  }),
  PUBLIC_URL: optionalText(
    'Where phones and VPN servers reach this API (https://vpn.example.com): stands in certificates and profiles. Absent: the address it listens on.',
  ),
  VPN_KEYS: optionalText(
    'Keys that the secrets of the VPN area are sealed under: lines of `<id>:<base64 of 32 bytes>`, the current one first.',
  ),
  VPN_KEYS_FILE: optionalText('Or the file they are in. With neither, the VPN area answers 503.'),
  VPN_DEFAULT_NETWORK: text('Network of a peer that names none.', { fallback: 'default' }),
  FORAGE_METRICS_TOKEN: optionalText('Bearer token that /metrics/forage wants; absent: anybody may read it.'),
  METRICS_HOST: text('Address /metrics listens on.', { fallback: '127.0.0.1' }),
  METRICS_PORT: integer('Port /metrics listens on; 0 takes a free one.', { min: 0, max: 65535, fallback: 9101 }),
  METRICS_TOKEN_FILE: optionalText(
    'A file with the bearer tokens that open /metrics, one a line; absent: it is open to all who reach it.',
  ),
  LOG_LEVEL: choice('From which level on events are logged; `info` has a line for every request.', logLevels, 'info'),
  SHUTDOWN_DELAY_MS: integer('Between "not ready" and the end of listening, for load balancers to notice.', {
    min: 0,
    max: 120_000,
    fallback: 250,
  }),
};

export type GatewayConfiguration = Configuration<typeof settings>;

export interface IssuerSetting extends Issuer {
  readonly source: KeySource;
}

const IssuerEntry = Type.Object(
  {
    issuer: Type.String({ minLength: 1 }),
    audience: Type.String({ minLength: 1 }),
    algorithms: Type.Array(Type.Enum([...algorithms]), { minItems: 1 }),
    jwks_url: Type.Optional(Type.String()),
    jwks_file: Type.Optional(Type.String({ minLength: 1 })),
    tenant_claim: Type.Optional(Type.String({ minLength: 1 })),
    tenants: Type.Optional(Type.Array(Type.String({ pattern: '^(?:[A-Za-z0-9_-]{1,64}|[A-Za-z0-9_-]{0,64}\\*)$' }))),
    operators: Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false },
);
type IssuerEntry = Static<typeof IssuerEntry>;
const decodeIssuers = decoder(Type.Array(IssuerEntry, { minItems: 1 }));

function issuerSetting(entry: IssuerEntry, from: string): IssuerSetting {
  const { jwks_url: url, jwks_file: path } = entry;
  if ((url === undefined) === (path === undefined)) {
    throw new ConfigurationError([`${from}: ${entry.issuer} needs either a JWKS URL or a JWKS file`]);
  }
  if (url !== undefined && !isHttpUrl(url)) {
    throw new ConfigurationError([`${from}: the JWKS URL of ${entry.issuer} must be ${httpUrlForm}`]);
  }
  return {
    issuer: entry.issuer,
    audience: entry.audience,
    algorithms: entry.algorithms,
    tenantClaim: entry.tenant_claim ?? 'tenant_id',
    tenants: entry.tenants ?? ['*'],
    operators: entry.operators ?? true,
    source: url === undefined ? { kind: 'file', path: path ?? '' } : { kind: 'url', url },
  };
}

function issuersOfFile(path: string): IssuerSetting[] {
  const content = readSettingFile('AUTH_ISSUERS_FILE', path);
  try {
    const entries = decodeIssuers(Buffer.from(content));
    const open = entries.find(({ tenants, operators }) => tenants === undefined || operators === undefined);
    if (entries.length > 1 && open !== undefined) {
      throw new ConfigurationError([
        `AUTH_ISSUERS_FILE: of several issuers each must say which "tenants" it may name (["*"]: all) and whether "operators" (true or false); ${open.issuer} does not`,
      ]);
    }
    return entries.map((entry) => issuerSetting(entry, 'AUTH_ISSUERS_FILE'));
  } catch (error) {
    if (error instanceof DecodeError) throw new ConfigurationError([`AUTH_ISSUERS_FILE: ${error.message}`]);
    throw error;
  }
}

/** @throws ConfigurationError */
export function issuersOf(configuration: GatewayConfiguration): IssuerSetting[] {
  const { AUTH_ISSUERS_FILE: file, AUTH_ISSUER: issuer, AUTH_AUDIENCE: audience } = configuration;
  if (file !== undefined) {
    const issuers = issuersOfFile(file);
    if (new Set(issuers.map((entry) => entry.issuer)).size < issuers.length) {
      throw new ConfigurationError(['AUTH_ISSUERS_FILE: one issuer, two entries']);
    }
    return issuers;
  }
  if (issuer === undefined || audience === undefined) {
    throw new ConfigurationError(['AUTH_ISSUERS_FILE, or AUTH_ISSUER and AUTH_AUDIENCE, are required']);
  }
  const given = configuration.AUTH_ALGORITHMS.map((name) => algorithms.find((known) => known === name));
  if (given.length === 0 || given.includes(undefined)) {
    throw new ConfigurationError([`AUTH_ALGORITHMS must be of ${algorithms.join(', ')}`]);
  }
  const { AUTH_JWKS_URL: url, AUTH_JWKS_FILE: path, AUTH_TENANT_CLAIM: claim } = configuration;
  const entry = {
    issuer,
    audience,
    algorithms: given as Algorithm[],
    tenant_claim: claim,
    ...(url === undefined ? {} : { jwks_url: url }),
    ...(path === undefined ? {} : { jwks_file: path }),
  };
  return [issuerSetting(entry, 'AUTH_ISSUER')];
}

const encodePassword =
  'a user and a password in REDIS_URL must be percent-encoded (%25 for %, %2F for /, %23 for #); REDIS_PASSWORD_FILE holds a password as it is';

/**
 * Undefined: there is none. A fault never shows the URL, which may hold a password. @throws
 * ConfigurationError
 */
export function redisAccessOf(configuration: GatewayConfiguration): RedisAccess | undefined {
  const { REDIS_URL: given, REDIS_CA_FILE: caFile, REDIS_USERNAME: user, REDIS_PASSWORD_FILE: file } = configuration;
  if (given === undefined) return undefined;
  const fault = (what: string): ConfigurationError => new ConfigurationError([what]);
  if (!URL.canParse(given)) throw fault(`REDIS_URL is no URL; ${encodePassword}`);
  const url = new URL(given);
  const database = Number(url.pathname.slice(1));
  if (url.protocol !== 'redis:' && url.protocol !== 'rediss:')
    throw fault('REDIS_URL must begin redis:// or rediss://');
  if (url.hostname === '' || url.search !== '' || url.hash !== '' || !Number.isInteger(database)) {
    throw fault(
      `REDIS_URL must be redis://host:port, with a number of a database behind it at most; ${encodePassword}`,
    );
  }
  if (file !== undefined && url.password !== '')
    throw fault('REDIS_PASSWORD_FILE or a password in REDIS_URL, not both');
  if (user !== undefined && url.username !== '') throw fault('REDIS_USERNAME or a user in REDIS_URL, not both');
  const isTls = url.protocol === 'rediss:';
  if (caFile !== undefined && !isTls) throw fault('REDIS_CA_FILE goes with rediss:// in REDIS_URL');
  const decoded = (part: string): string => {
    try {
      return decodeURIComponent(part);
    } catch {
      throw fault(encodePassword);
    }
  };
  const username = user ?? decoded(url.username);
  const password = file === undefined ? decoded(url.password) : readSettingFile('REDIS_PASSWORD_FILE', file);
  if (username !== '' && password === '') throw fault('REDIS_USERNAME needs REDIS_PASSWORD_FILE');
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? 6379 : Number(url.port),
    database,
    ...(username === '' ? {} : { username }),
    ...(password === '' ? {} : { password }),
    ...(isTls ? { tls: caFile === undefined ? {} : { ca: readSettingFile('REDIS_CA_FILE', caFile) } } : {}),
  };
}

/** @throws ConfigurationError */
export function vaultKeysOf({ VPN_KEYS: given, VPN_KEYS_FILE: file }: GatewayConfiguration): VaultKey[] {
  if (given !== undefined && file !== undefined) throw new ConfigurationError(['VPN_KEYS or VPN_KEYS_FILE, not both']);
  if (file !== undefined) return parseVaultKeys(readSettingFile('VPN_KEYS_FILE', file));
  return given === undefined ? [] : parseVaultKeys(given);
}

/**
 * Without a slash at the end. What files could not name is refused here, and not by every file.
 * @throws ConfigurationError
 */
export function publicUrlOf({ PUBLIC_URL: url }: Pick<GatewayConfiguration, 'PUBLIC_URL'>): string | undefined {
  if (url === undefined) return undefined;
  const base = URL.canParse(url) ? new URL(url).href.replace(/\/+$/, '') : '';
  if (!isBaseUrl(base)) {
    throw new ConfigurationError([
      'PUBLIC_URL must be an http or https URL without user, query and fragment, its path of letters, digits and . _ ~ -',
    ]);
  }
  return base;
}

/** @throws ConfigurationError */
export function defaultNetworkOf({ VPN_DEFAULT_NETWORK: name }: GatewayConfiguration): NetworkName {
  if (!isNetworkName(name)) throw new ConfigurationError([`VPN_DEFAULT_NETWORK: ${name} is no name of a network`]);
  return name;
}

/** @throws ConfigurationError */
export function trustedProxies(networks: readonly string[]): BlockList {
  const proxies = new BlockList();
  for (const network of networks) {
    const [address = '', bits] = network.split('/', 2);
    const version = isIP(address);
    const prefix = bits === undefined ? (version === 4 ? 32 : 128) : Number(bits);
    if (version === 0 || !Number.isInteger(prefix) || prefix < 0 || prefix > (version === 4 ? 32 : 128)) {
      throw new ConfigurationError([`TRUSTED_PROXIES: ${network} is no network`]);
    }
    proxies.addSubnet(address, prefix, version === 4 ? 'ipv4' : 'ipv6');
  }
  return proxies;
}
