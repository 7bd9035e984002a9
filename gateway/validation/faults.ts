/** The faults of a request, by field. Pure. */
import type { TLocalizedValidationError } from 'typebox/error';
import { namesIn, partsOf, wordsOf } from '../../lib/validation/words.ts';
import type { FieldErrors } from '../../schemas/errors.ts';
import { limits } from '../../schemas/limits.ts';

/** A value that can be trusted, or all of its faults. */
export type Validated<T> =
  | {
      readonly ok: true;
      readonly value: T;
      /** A warning about a valid request (header `Longshore-Warning`). */
      readonly warning?: string | undefined;
    }
  | { readonly ok: false; readonly faults: FieldErrors };

type Fault = readonly [field: string, message: string];

/** `/region_caps/eu/containers` → `region_caps.eu.containers` */
const fieldOf = (pointer: string, ...below: string[]): string => [...partsOf(pointer), ...below].join('.') || '_';

/** The fields that an error is about, with their faults; none if another error says it better. */
function faultsOf(error: TLocalizedValidationError): readonly Fault[] {
  const message = wordsOf(error);
  if (message === undefined) return [];
  return (namesIn(error) ?? [undefined]).map((name) => [
    fieldOf(error.instancePath, ...(name === undefined ? [] : [name])),
    message,
  ]);
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
