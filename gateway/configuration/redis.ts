/** The address of Redis, and the user and password with which the gateway connects. */
import { ConfigurationError, readSettingFile } from '../../lib/config.ts';
import type { RedisAccess } from '../auth/redis.ts';
import type { GatewayConfiguration } from './settings.ts';

type RedisSettings = Pick<
  GatewayConfiguration,
  'REDIS_URL' | 'REDIS_CA_FILE' | 'REDIS_USERNAME' | 'REDIS_PASSWORD_FILE'
>;

/** No fault quotes the URL: it may hold a password. */
const fault = (what: string): ConfigurationError => new ConfigurationError([what]);

const encodePassword =
  'percent-encode the user and the password in REDIS_URL (%25 for %, %2F for /, %23 for #), or put the password as it is into REDIS_PASSWORD_FILE';

function decoded(part: string): string {
  try {
    return decodeURIComponent(part);
  } catch {
    throw fault(`REDIS_URL is not a valid URL; ${encodePassword}`);
  }
}

function urlOf(given: string): URL {
  if (!URL.canParse(given)) throw fault(`REDIS_URL is not a valid URL; ${encodePassword}`);
  const url = new URL(given);
  if (url.protocol !== 'redis:' && url.protocol !== 'rediss:') {
    throw fault('REDIS_URL must begin with redis:// or rediss://');
  }
  const isDatabase = Number.isInteger(Number(url.pathname.slice(1)));
  if (url.hostname === '' || url.search !== '' || url.hash !== '' || !isDatabase) {
    throw fault(`REDIS_URL must be redis://host:port or redis://host:port/database; ${encodePassword}`);
  }
  return url;
}

function credentialsOf(url: URL, { REDIS_USERNAME: user, REDIS_PASSWORD_FILE: file }: RedisSettings) {
  if (file !== undefined && url.password !== '') {
    throw fault('set REDIS_PASSWORD_FILE or a password in REDIS_URL, not both');
  }
  if (user !== undefined && url.username !== '') {
    throw fault('set REDIS_USERNAME or a user in REDIS_URL, not both');
  }
  const username = user ?? decoded(url.username);
  const password = file === undefined ? decoded(url.password) : readSettingFile('REDIS_PASSWORD_FILE', file);
  if (username !== '' && password === '') throw fault('REDIS_USERNAME needs REDIS_PASSWORD_FILE');
  return { ...(username === '' ? {} : { username }), ...(password === '' ? {} : { password }) };
}

/** Undefined if no Redis is configured. @throws ConfigurationError */
export function redisAccessOf(configuration: RedisSettings): RedisAccess | undefined {
  const { REDIS_URL: given, REDIS_CA_FILE: caFile } = configuration;
  if (given === undefined) return undefined;
  const url = urlOf(given);
  const credentials = credentialsOf(url, configuration);
  const isTls = url.protocol === 'rediss:';
  if (caFile !== undefined && !isTls) throw fault('REDIS_CA_FILE needs a REDIS_URL that begins with rediss://');
  return {
    host: url.hostname.replace(/^\[|\]$/g, ''),
    port: url.port === '' ? 6379 : Number(url.port),
    database: Number(url.pathname.slice(1)),
    ...credentials,
    ...(isTls ? { tls: caFile === undefined ? {} : { ca: readSettingFile('REDIS_CA_FILE', caFile) } } : {}),
  };
}
