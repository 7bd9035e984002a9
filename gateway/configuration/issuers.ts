/** The token issuers that a gateway trusts: one from settings, or several from a file. */
import Type, { type Static } from 'typebox';
import { ConfigurationError, httpUrlForm, isHttpUrl, readSettingFile } from '../../lib/config.ts';
import { DecodeError, decoder } from '../../lib/decode.ts';
import { algorithms, type Algorithm, type Issuer } from '../auth/claims.ts';
import { ownIssuer } from '../../schemas/api/keys/signing-key.ts';
import type { KeySource } from '../auth/keys.ts';
import { isOfOperator, isScope } from '../auth/scopes.ts';

export const defaultTenantClaim = 'tenant_id';

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
    scopes: Type.Optional(
      Type.Object(
        {
          claim: Type.Optional(Type.String({ minLength: 1 })),
          ignore: Type.Optional(Type.Array(Type.String({ minLength: 1 }))),
        },
        { additionalProperties: false },
      ),
    ),
  },
  { additionalProperties: false },
);
type IssuerEntry = Static<typeof IssuerEntry>;
const decodeIssuers = decoder(Type.Array(IssuerEntry, { minItems: 1 }));

function issuerSetting(entry: IssuerEntry, from: string): IssuerSetting {
  const { jwks_url: url, jwks_file: path } = entry;
  if (entry.issuer === ownIssuer) {
    throw new ConfigurationError([`${from}: the issuer ${ownIssuer} is the cluster itself; give yours another name`]);
  }
  if ((url === undefined) === (path === undefined)) {
    throw new ConfigurationError([`${from}: ${entry.issuer} needs either a JWKS URL or a JWKS file`]);
  }
  if (url !== undefined && !isHttpUrl(url)) {
    throw new ConfigurationError([`${from}: the JWKS URL of ${entry.issuer} must be ${httpUrlForm}`]);
  }
  const { claim, ignore = [] } = entry.scopes ?? {};
  // Without it, a token that only has this word would open its whole tenant.
  const ours = ignore.find((word) => isScope(word) || isOfOperator(word));
  if (ours !== undefined) {
    throw new ConfigurationError([`${from}: ${entry.issuer} ignores the scope "${ours}", which is one of Longshore`]);
  }
  return {
    issuer: entry.issuer,
    audience: entry.audience,
    algorithms: entry.algorithms,
    tenantClaim: entry.tenant_claim ?? defaultTenantClaim,
    tenants: entry.tenants ?? ['*'],
    operators: entry.operators ?? true,
    scopes: { claim, ignore },
    source: url === undefined ? { kind: 'file', path: path ?? '' } : { kind: 'url', url },
  };
}

function entriesOfFile(path: string): IssuerEntry[] {
  const content = readSettingFile('AUTH_ISSUERS_FILE', path);
  try {
    return decodeIssuers(Buffer.from(content));
  } catch (error) {
    if (error instanceof DecodeError) throw new ConfigurationError([`AUTH_ISSUERS_FILE: ${error.message}`]);
    throw error;
  }
}

function issuersOfFile(path: string): IssuerSetting[] {
  const entries = entriesOfFile(path);
  const open = entries.find(({ tenants, operators }) => tenants === undefined || operators === undefined);
  if (entries.length > 1 && open !== undefined) {
    throw new ConfigurationError([
      `AUTH_ISSUERS_FILE: with several issuers, each entry needs "tenants" (["*"] for all) and "operators" (true or false); ${open.issuer} lacks one`,
    ]);
  }
  if (new Set(entries.map(({ issuer }) => issuer)).size < entries.length) {
    throw new ConfigurationError(['AUTH_ISSUERS_FILE: two entries have the same issuer; keep one']);
  }
  return entries.map((entry) => issuerSetting(entry, 'AUTH_ISSUERS_FILE'));
}

/** Not `GatewayConfiguration`: the table of settings takes its defaults from here. */
interface IssuerSettings {
  readonly AUTH_ISSUERS_FILE: string | undefined;
  readonly AUTH_ISSUER: string | undefined;
  readonly AUTH_AUDIENCE: string | undefined;
  readonly AUTH_JWKS_URL: string | undefined;
  readonly AUTH_JWKS_FILE: string | undefined;
  readonly AUTH_ALGORITHMS: readonly string[];
  readonly AUTH_TENANT_CLAIM: string;
  readonly AUTH_SCOPES_CLAIM: string | undefined;
  readonly AUTH_SCOPES_IGNORED: readonly string[];
}

/** @throws ConfigurationError */
export function issuersOf(configuration: IssuerSettings): IssuerSetting[] {
  const { AUTH_ISSUERS_FILE: file, AUTH_ISSUER: issuer, AUTH_AUDIENCE: audience } = configuration;
  if (file !== undefined) return issuersOfFile(file);
  if (issuer === undefined || audience === undefined) {
    throw new ConfigurationError(['set AUTH_ISSUERS_FILE, or AUTH_ISSUER and AUTH_AUDIENCE']);
  }
  const given = configuration.AUTH_ALGORITHMS.map((name) => algorithms.find((known) => known === name));
  if (given.length === 0 || given.includes(undefined)) {
    throw new ConfigurationError([`AUTH_ALGORITHMS must list one or more of ${algorithms.join(', ')}`]);
  }
  const { AUTH_SCOPES_CLAIM: scopesClaim, AUTH_SCOPES_IGNORED: ignore } = configuration;
  const { AUTH_JWKS_URL: url, AUTH_JWKS_FILE: path, AUTH_TENANT_CLAIM: claim } = configuration;
  const entry = {
    issuer,
    audience,
    algorithms: given as Algorithm[],
    tenant_claim: claim,
    scopes: { ...(scopesClaim === undefined ? {} : { claim: scopesClaim }), ignore: [...ignore] },
    ...(url === undefined ? {} : { jwks_url: url }),
    ...(path === undefined ? {} : { jwks_file: path }),
  };
  return [issuerSetting(entry, 'AUTH_ISSUER')];
}
