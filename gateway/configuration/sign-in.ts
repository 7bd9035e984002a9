/** Sign-in with an identity provider, and the one-time links of development. */
import Type from 'typebox';
import { ConfigurationError, readSettingFile } from '../../lib/config.ts';
import { DecodeError, decoder } from '../../lib/decode.ts';
import { TenantId } from '../../schemas/ids.ts';
import { keyScopePattern } from '../../schemas/scopes.ts';
import { isOfOperator } from '../auth/scopes.ts';
import type { Rule } from '../sign-in/mapping.ts';
import type { SignInSettings } from '../sign-in/provider.ts';
import type { GatewayConfiguration } from './settings.ts';
import { vaultKeysOf } from './vault.ts';
import { publicUrlOf } from './vpn.ts';
import { MiB } from '../../schemas/limits/units.ts';

/** Rules in the file, and its size. */
const signInRules = 1000;
const signInRulesBytes = 1 * MiB;

const RuleEntry = Type.Object(
  {
    claim: Type.String({ minLength: 1, maxLength: 256 }),
    value: Type.Optional(Type.String({ minLength: 1, maxLength: 1024 })),
    tenant: Type.Optional(TenantId),
    scopes: Type.Array(Type.String({ pattern: keyScopePattern }), { minItems: 1, uniqueItems: true }),
    device: Type.Optional(Type.Boolean()),
  },
  { additionalProperties: false },
);
const decodeRules = decoder(Type.Array(RuleEntry, { minItems: 1, maxItems: signInRules }));

const fault = (what: string): ConfigurationError => new ConfigurationError([what]);

function ruleOf({ claim, value, tenant, scopes, device }: Type.Static<typeof RuleEntry>, index: number): Rule {
  const where = `SIGN_IN_RULES_FILE: rule ${index + 1}`;
  if (value !== undefined && tenant !== undefined) return { by: 'value', claim, value, tenant, scopes, device };
  if (value !== undefined || tenant !== undefined) {
    throw fault(`${where} needs both "value" and "tenant", or neither if the claim holds names of tenants`);
  }
  // Everybody who may write that claim would be an operator.
  const ofOperator = scopes.find(isOfOperator);
  if (ofOperator !== undefined) throw fault(`${where} gives "${ofOperator}": name a "value" and a "tenant" for it`);
  return { by: 'name', claim, scopes, device };
}

function rulesOf(path: string): readonly Rule[] {
  const content = readSettingFile('SIGN_IN_RULES_FILE', path);
  if (content.length > signInRulesBytes) throw fault('SIGN_IN_RULES_FILE is too large');
  try {
    return decodeRules(Buffer.from(content)).map(ruleOf);
  } catch (error) {
    if (error instanceof DecodeError) throw fault(`SIGN_IN_RULES_FILE: ${error.message}`);
    throw error;
  }
}

const isLoopback = ({ hostname }: URL): boolean => /^(?:localhost|127(?:\.\d+){3}|\[::1\])$/.test(hostname);

/** Codes and tokens pass there, so only a loopback address may do without TLS. */
const isSafe = (url: URL): boolean => url.protocol === 'https:' || (url.protocol === 'http:' && isLoopback(url));

function safeUrl(name: string, text: string): URL {
  const url = URL.canParse(text) ? new URL(text) : undefined;
  if (url === undefined || !isSafe(url) || url.username !== '' || url.search !== '' || url.hash !== '') {
    throw fault(`${name} must be an https URL without user, query and fragment (http only on a loopback address)`);
  }
  return url;
}

/** Undefined where it is not set up. @throws ConfigurationError */
export function signInOf(configuration: GatewayConfiguration): SignInSettings | undefined {
  const {
    SIGN_IN_ISSUER: issuer,
    SIGN_IN_CLIENT_ID: clientId,
    SIGN_IN_CLIENT_SECRET_FILE: secretFile,
    SIGN_IN_RULES_FILE: rulesFile,
    SIGN_IN_SCOPES: scopes,
    SIGN_IN_DEVICE: device,
    SIGN_IN_DEVICE_SESSION: deviceLifeMs,
  } = configuration;
  const publicUrl = publicUrlOf(configuration);
  if (issuer === undefined) {
    if (clientId === undefined && secretFile === undefined && rulesFile === undefined) return undefined;
    throw fault('set SIGN_IN_ISSUER too: without it, nobody can sign in');
  }
  if (clientId === undefined || rulesFile === undefined || publicUrl === undefined) {
    throw fault('SIGN_IN_ISSUER needs SIGN_IN_CLIENT_ID, SIGN_IN_RULES_FILE and PUBLIC_URL');
  }
  if (vaultKeysOf(configuration).length === 0) {
    throw fault('SIGN_IN_ISSUER needs VAULT_KEYS or VAULT_KEYS_FILE: sessions are signed with a key that it keeps');
  }
  if (!scopes.split(' ').includes('openid')) throw fault('SIGN_IN_SCOPES must have "openid" among its words');
  safeUrl('PUBLIC_URL', publicUrl);
  return {
    issuer: safeUrl('SIGN_IN_ISSUER', issuer),
    clientId,
    clientSecret: secretFile === undefined ? undefined : readSettingFile('SIGN_IN_CLIENT_SECRET_FILE', secretFile),
    scopes,
    rules: rulesOf(rulesFile),
    publicUrl,
    deviceLifeMs: device === 'off' ? undefined : Math.min(deviceLifeMs, configuration.SIGN_IN_SESSION),
  };
}

/** Lifetime of a session, in milliseconds. @throws ConfigurationError */
export function sessionLifeOf({ SIGN_IN_SESSION: ms, AUTH_TOKEN_LIFE_MAX: max }: GatewayConfiguration): number {
  if (ms > max) throw fault('SIGN_IN_SESSION must not be longer than AUTH_TOKEN_LIFE_MAX');
  return ms;
}

/** `undefined` without one-time links. @throws ConfigurationError */
export function linkFolderOf(configuration: GatewayConfiguration): string | undefined {
  const { SIGN_IN_LINK_FOLDER: folder, NODE_ENV: environment } = configuration;
  if (folder !== undefined && environment === 'production') {
    throw fault('SIGN_IN_LINK_FOLDER is for development: with NODE_ENV=production, set SIGN_IN_ISSUER instead');
  }
  return folder;
}
