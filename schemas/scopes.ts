/** The scopes of a token: what of the API it opens. */
import { networkNamePattern } from './words.ts';

/**
 * Scopes of a tenant's token. A token without any of them, and without one of the operator, opens
 * the whole API of its tenant.
 */
export const tenantScopes = ['read', 'deploy', 'exec', 'vpn', 'admin'] as const;
export type TenantScope = (typeof tenantScopes)[number];

const partsOfOperator = ['operator:read', 'operator:tenants', 'operator:hosts', 'operator:networks'] as const;

/**
 * Scopes that open a part of the operator API; `operator` opens all of it. `network:` stands for
 * `network:<name>`, with the name of the network in the path.
 */
export type OperatorScope = (typeof partsOfOperator)[number] | 'network:';

/** The scopes that a key may have, except `network:<name>`. */
export const keyScopes = [...tenantScopes, 'operator', ...partsOfOperator] as const;

/** A scope of a key: one of `keyScopes`, or `network:<name>` with the name of a VPN network. */
export const keyScopePattern = `^(?:${keyScopes.join('|')}|network:${networkNamePattern.slice(1, -1)})$`;

export type Scope = TenantScope | OperatorScope;

/** The scope as it is displayed. */
export const scopeText = (scope: Scope | 'operator'): string => (scope === 'network:' ? 'network:<name>' : scope);
