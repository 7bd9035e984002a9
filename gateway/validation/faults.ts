/**
 * The faults of a request, by field, in messages of our own: a library's messages change with the
 * library. Pure.
 */
import type { TLocalizedValidationError } from 'typebox/error';
import { addressPattern, cidrPattern, domainPattern, hostPattern } from '../../schemas/api/network.ts';
import type { FieldErrors } from '../../schemas/errors.ts';
import { limits } from '../../schemas/limits.ts';
import { keyScopePattern, keyScopes } from '../../schemas/scopes.ts';

/** A value that can be trusted, or all of its faults. */
export type Validated<T> =
  | {
      readonly ok: true;
      readonly value: T;
      /** What the client should know of a request that is right (header `Longshore-Warning`). */
      readonly warning?: string | undefined;
    }
  | { readonly ok: false; readonly faults: FieldErrors };

type Fault = readonly [field: string, message: string];

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
  host: 'must be a host name or an address',
  domain: 'must be a domain name, like example.com',
  network: 'must be a network in CIDR form, like 10.0.0.0/8, with no bits beyond its prefix',
  address: 'must be an IPv4 or IPv6 address',
  scope: `must be one of ${keyScopes.join(', ')} or network:<name>`,
  time: 'must be an RFC 3339 time, like 2026-01-31T12:00:00Z',
} as const;

const wordsOfPattern: ReadonlyMap<string, string> = new Map([
  [hostPattern, forms.host],
  [domainPattern, forms.domain],
  [cidrPattern, forms.network],
  [addressPattern, forms.address],
  [keyScopePattern, forms.scope],
]);

/**
 * `/region_caps/eu/containers` → `region_caps.eu.containers`; undoes the escapes of JSON Pointer
 * (RFC 6901).
 */
const fieldOf = (pointer: string, ...below: string[]): string =>
  [
    ...pointer
      .split('/')
      .slice(1)
      .map((part) => part.replaceAll('~1', '/').replaceAll('~0', '~')),
    ...below,
  ].join('.') || '_';

/** The fields that an error is about, with their faults; none if another error says it better. */
function faultsOf(error: TLocalizedValidationError): readonly Fault[] {
  const { instancePath } = error;
  const here = (message: string): readonly Fault[] => [[fieldOf(instancePath), message]];
  const each = (names: readonly string[], message: string): readonly Fault[] =>
    names.map((name) => [fieldOf(instancePath, name), message]);
  switch (error.keyword) {
    case 'required':
      return each(error.params.requiredProperties, "can't be blank");
    case 'additionalProperties':
      return each(error.params.additionalProperties, 'is not known');
    case 'type':
      // The schema says "or null"; the error of its other branch is enough.
      return error.params.type === 'null' ? [] : here(typeWords[String(error.params.type)] ?? 'is invalid');
    case 'pattern':
      return here(wordsOfPattern.get(String(error.params.pattern)) ?? `must match ${String(error.params.pattern)}`);
    case 'format':
      return here(error.params.format === 'date-time' ? forms.time : `must be a ${error.params.format}`);
    case 'enum':
      return here(`must be one of ${error.params.allowedValues.map(String).join(', ')}`);
    case 'minimum':
      return here(`must be at least ${error.params.limit}`);
    case 'maximum':
      return here(`must be at most ${error.params.limit}`);
    case 'minLength':
    case 'minItems':
      return here("can't be blank");
    case 'maxLength':
      return here(`must be at most ${error.params.limit} characters`);
    case 'maxItems':
      return here(`must be at most ${error.params.limit} items`);
    case 'maxProperties':
      return here(`must be at most ${error.params.limit} keys`);
    case 'uniqueItems':
      return here('must be distinct');
    case 'anyOf':
    case 'boolean':
      return [];
    default:
      return here('is invalid');
  }
}

const depthOf = (field: string): number => field.split('.').length;

/**
 * The faults of up to `limits.bodyFaults` fields, outer fields first: "the list is too long" says
 * more than a fault of each item.
 */
export function fieldErrors(errors: readonly TLocalizedValidationError[]): FieldErrors {
  const faults = new Map<string, Set<string>>();
  const found = errors.flatMap(faultsOf).toSorted(([one], [other]) => depthOf(one) - depthOf(other));
  for (const [field, message] of found) {
    const name = field.length > limits.faultFieldChars ? `${field.slice(0, limits.faultFieldChars)}…` : field;
    if (faults.size >= limits.bodyFaults && !faults.has(name)) continue;
    faults.set(name, (faults.get(name) ?? new Set()).add(message));
  }
  if (faults.size === 0) faults.set('_', new Set(['is invalid']));
  return Object.fromEntries([...faults].map(([field, messages]) => [field, [...messages]]));
}
