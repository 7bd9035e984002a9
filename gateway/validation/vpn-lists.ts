/** Checks that bodies of peers and networks share beyond their schemas. Pure. */
import { isValues } from '../../lib/values.ts';
import { formatAddress, formatCidr, isResolver, parseAddress, parseCidr } from '../../schemas/cidr.ts';
import type { FieldErrors } from '../../schemas/errors.ts';
import { limits } from '../../schemas/limits.ts';
import { forms } from '../../lib/validation/words.ts';
import type { Validated } from './faults.ts';

/** Reports a fault of a field; only the first of a field counts. */
export type Report = (field: string, message: string) => void;

/**
 * All faults at once: those of the schema first, then those that `check` finds. `check` gets fields
 * of any type.
 */
export function examine<T>(
  valid: Validated<T>,
  body: unknown,
  check: (fields: Readonly<Record<string, unknown>>, report: Report) => void,
): FieldErrors {
  const faults: FieldErrors = valid.ok ? {} : { ...valid.faults };
  if (isValues(body)) {
    check(body, (field, message) => {
      faults[field] ??= [message];
    });
  }
  return faults;
}

/** Items beyond this are not checked: the schema has already reported that the list is too long. */
const itemsMax = Math.max(limits.networkRoutes, limits.networkDns, limits.proxyDomains);

const texts = (value: unknown): readonly (readonly [index: number, text: string])[] =>
  Array.isArray(value)
    ? value
        .slice(0, itemsMax)
        .flatMap((item: unknown, index) => (typeof item === 'string' ? [[index, item] as const] : []))
    : [];

/** Each text of the list must have a normal form, and no two the same. */
function checkList(
  field: string,
  value: unknown,
  { normal, fault }: { normal: (text: string) => string | undefined; fault: string },
  report: Report,
): void {
  const seen = new Set<string>();
  for (const [index, text] of texts(value)) {
    const normalText = normal(text);
    if (normalText === undefined) report(`${field}.${index}`, fault);
    else if (seen.has(normalText)) report(field, 'must be distinct');
    else seen.add(normalText);
  }
}

export const normalCidr = (text: string): string | undefined => {
  const cidr = parseCidr(text);
  return cidr === undefined ? undefined : formatCidr(cidr);
};

export const normalAddress = (text: string): string | undefined => {
  const address = parseAddress(text);
  return address === undefined ? undefined : formatAddress(address.family, address.value);
};

export const checkRoutes = (value: unknown, report: Report): void =>
  checkList('routes', value, { normal: normalCidr, fault: forms.network }, report);
export const checkDns = (value: unknown, report: Report): void =>
  checkList('dns', value, { normal: normalAddress, fault: forms.address }, report);
/** Of a route. */
export const isIpv4 = (cidr: string): boolean => !cidr.includes(':');

/** The resolvers of a peer. Those of a network may be of an older release, which took all. */
export const checkResolvers = (value: unknown, report: Report): void =>
  checkList(
    'dns',
    value,
    {
      normal: (text) => {
        const address = normalAddress(text);
        return address !== undefined && isResolver(address) ? address : undefined;
      },
      fault: forms.resolver,
    },
    report,
  );
export const checkNames = (
  field: string,
  value: unknown,
  normal: (text: string) => string | undefined,
  report: Report,
) => checkList(field, value, { normal, fault: forms.domain }, report);

/** The normal forms of a list without faults. */
export const normalised = (list: readonly string[], normal: (text: string) => string | undefined): string[] =>
  list.map((text) => normal(text) ?? text);
