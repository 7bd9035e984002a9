/**
 * Rules for which registries images may come from: a list of a tenant (kept by its actor) or of a
 * host (a setting of its agent). A rule is a registry by name (`registry.example.net`,
 * `10.1.2.3:5000`), every name below a suffix (`*.example.net`), or the word `public`. A name
 * without a port means port 443; `:*` means every port. Pure.
 */
import Type from 'typebox';
import { limits } from '../limits.ts';

const host = '(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*)';
/** This pattern matches `public` as a host name too. */
export const registryRulePattern = `^(?:(?:\\*\\.)?${host}|\\[[0-9A-Fa-f:]+\\])(?::(?:[1-9][0-9]{0,4}|\\*))?$`;

export const RegistryRule = Type.String({
  pattern: registryRulePattern,
  maxLength: 255,
  description:
    '`host`, `host:port`, `host:*`, `*.suffix`, or `public`: every DNS name that is not of a private network.',
});
export const RegistryRules = Type.Array(RegistryRule, { maxItems: limits.registryRules, uniqueItems: true });

const rule = new RegExp(registryRulePattern);
export const isRegistryRule = (text: string): boolean => text.length <= 255 && rule.test(text);

/**
 * Names of the same registry. The engine asks the last of them, with tokens of `auth.docker.io`.
 */
const dockerHub = new Set(['docker.io', 'index.docker.io', 'registry-1.docker.io']);
const dockerHubHosts = [...dockerHub, 'auth.docker.io'];
const httpsPort = '443';

interface Endpoint {
  /** In lower case; an IPv6 address without its brackets. */
  readonly host: string;
  readonly port: string;
}

function endpointOf(text: string): Endpoint {
  const [, bracketed, plain = '', port = httpsPort] = /^(?:\[([^\]]*)\]|([^:]*))(?::(\d+|\*))?$/.exec(text) ?? [];
  const name = (bracketed ?? plain).toLowerCase();
  return { host: dockerHub.has(name) ? 'docker.io' : name, port: port === '*' ? port : String(Number(port)) };
}

/** The one spelling under which a tenant's login is kept: `docker.io`, `registry.example:5000`. */
export function registryName(registry: string): string {
  const { host, port } = endpointOf(registry);
  const name = host.includes(':') ? `[${host}]` : host;
  return port === httpsPort ? name : `${name}:${port}`;
}

/** The names that the engine looks up for images of a registry. */
export const hostsOfRegistry = (registry: string): readonly string[] => {
  const { host } = endpointOf(registry);
  return host === 'docker.io' ? [...dockerHubHosts] : [host];
};

/**
 * A DNS name with a dot whose last label begins with a letter. This excludes IPv4 addresses in any
 * spelling (`127.1`, `0x7f.1`), IPv6 addresses, names of a single label that a search domain would
 * complete, and `localhost`.
 */
const isPublicName = (name: string): boolean =>
  /^(?:[a-z0-9](?:[a-z0-9-]*[a-z0-9])?\.)+[a-z](?:[a-z0-9-]*[a-z0-9])?$/.test(name) && !/(?:^|\.)localhost$/.test(name);

/**
 * - `named`: a rule names it, or its suffix. The author of the rule knows where it is.
 * - `public`: only the word `public` allows it, so its addresses must be public too.
 */
export type RegistryVerdict = 'named' | 'public' | 'refused';

export function judgeRegistry(registry: string, rules: readonly string[]): RegistryVerdict {
  const asked = endpointOf(registry);
  const isNamed = (text: string): boolean => {
    if (text.toLowerCase() === 'public') return false;
    const isSuffix = text.startsWith('*.');
    const named = endpointOf(isSuffix ? text.slice(2) : text);
    if (named.port !== '*' && named.port !== asked.port) return false;
    return isSuffix ? asked.host.endsWith(`.${named.host}`) : asked.host === named.host;
  };
  if (rules.some(isNamed)) return 'named';
  const hasPublic = rules.some((text) => text.toLowerCase() === 'public');
  return hasPublic && isPublicName(asked.host) ? 'public' : 'refused';
}
