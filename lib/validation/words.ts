/** Messages of our own about invalid values: a library's messages change with the library. Pure. */
import type { TLocalizedValidationError } from 'typebox/error';
import { addressPattern, cidrPattern, domainPattern, hostPattern } from '../../schemas/api/network.ts';
import { verifierPattern } from '../../schemas/api/peer-link.ts';
import { keyScopePattern, keyScopes } from '../../schemas/scopes.ts';

const typeWords: Readonly<Record<string, string>> = {
  string: 'must be a string',
  integer: 'must be an integer',
  number: 'must be a number',
  boolean: 'must be true or false',
  array: 'must be a list',
  object: 'must be an object',
};

/** Messages that say what texts of a kind must look like. */
export const forms = {
  host: 'must be a host name or an address; write letters other than a-z in punycode (xn--...)',
  domain: 'must be a domain name, like example.com',
  network: 'must be a network in CIDR form, like 10.0.0.0/8, with no bits beyond its prefix',
  address: 'must be an IPv4 or IPv6 address',
  resolver: 'must be the address of a resolver, not an unspecified, loopback or multicast one',
  routesOfPeers: 'none is of a family that peers have; name an IPv4 network, or give the network an ipv6_pool',
  loop: (route: string, endpoint: string) =>
    `${route} contains the endpoint ${endpoint}, whose packets can't go into the tunnel; leave that address out, or route everything (0.0.0.0/0 or ::/0)`,
  scope: `must be one of ${keyScopes.join(', ')} or network:<name>`,
  verifier: 'must be 32 random bytes in base64url: 43 characters',
  time: 'must be an RFC 3339 time, like 2026-01-31T12:00:00Z',
} as const;

const wordsOfPattern: ReadonlyMap<string, string> = new Map([
  [hostPattern, forms.host],
  [domainPattern, forms.domain],
  [cidrPattern, forms.network],
  [addressPattern, forms.address],
  [keyScopePattern, forms.scope],
  [verifierPattern, forms.verifier],
]);

/** The parts of a JSON Pointer (RFC 6901), without its escapes. */
export const partsOf = (pointer: string): string[] =>
  pointer
    .split('/')
    .slice(1)
    .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~'));

/**
 * The keys that the error is about, below its place; `undefined` if it is about the place itself.
 */
export function namesIn(error: TLocalizedValidationError): readonly string[] | undefined {
  if (error.keyword === 'required') return error.params.requiredProperties;
  return error.keyword === 'additionalProperties' ? error.params.additionalProperties : undefined;
}

/** Undefined if another error says it better. */
export function wordsOf(error: TLocalizedValidationError): string | undefined {
  switch (error.keyword) {
    case 'required':
      return "can't be blank";
    case 'additionalProperties':
      return 'is not known';
    case 'type':
      // The schema says "or null"; the error of its other branch is enough.
      return error.params.type === 'null' ? undefined : (typeWords[String(error.params.type)] ?? 'is invalid');
    case 'pattern':
      return wordsOfPattern.get(String(error.params.pattern)) ?? `must match ${String(error.params.pattern)}`;
    case 'format':
      return error.params.format === 'date-time' ? forms.time : `must be a ${error.params.format}`;
    case 'enum':
      return `must be one of ${error.params.allowedValues.map(String).join(', ')}`;
    case 'const':
      return `must be ${String(error.params.allowedValue)}`;
    case 'minimum':
      return `must be at least ${error.params.limit}`;
    case 'maximum':
      return `must be at most ${error.params.limit}`;
    case 'minLength':
    case 'minItems':
      return "can't be blank";
    case 'maxLength':
      return `must be at most ${error.params.limit} characters`;
    case 'maxItems':
      return `must be at most ${error.params.limit} items`;
    case 'maxProperties':
      return `must be at most ${error.params.limit} keys`;
    case 'uniqueItems':
      return 'must be distinct';
    case 'anyOf':
    case 'boolean':
      return undefined;
    default:
      return 'is invalid';
  }
}
