/**
 * Turns the body of a create into a ContainerSpec, that of an update into a patch, or either into
 * all of its faults at once. Pure. The table of fields has the rules and the messages: they are our
 * own, so that an upgrade of a library can't change the contract. The tenant's actor checks whether
 * the host exists, the name is free and the caps hold.
 */
import { meant } from '../../lib/validation/misspelt.ts';
import { isValues, type Values } from '../../lib/values.ts';
import { Container } from '../../schemas/api/container.ts';
import {
  changeable,
  containerFields,
  fieldOf,
  metadataNames,
  metadataToStore,
  settable,
  shown,
  usualPullPolicy,
  usualTag,
  type ContainerPatch,
  type ContainerSpec,
  type FieldName,
  type Metadata,
  type MetadataName,
} from '../../schemas/api/fields/container.ts';
import type { Report, TextsPatch } from '../../schemas/api/fields/kinds.ts';
import type { FieldErrors } from '../../schemas/errors.ts';
import type { Validated } from './faults.ts';

/** Collects faults by their field; several of one kind are one. */
function reporter(): { readonly faults: FieldErrors; readonly reportOf: (field: string) => Report } {
  // A body may have fields that every other object inherits, such as `constructor`.
  const faults = Object.create(null) as FieldErrors;
  const reportOf =
    (field: string): Report =>
    (fault) => {
      const found = (faults[field] ??= []);
      if (!found.includes(fault)) found.push(fault);
      return undefined;
    };
  return { faults, reportOf };
}

const notAnObject = { ok: false, faults: { _: ['must be an object'] } } as const satisfies Validated<never>;

/** A client may send back a container that it has read. */
const expected = new Set([...settable, ...Object.keys(Container.properties)]);
const ignoredKeys = (body: Values): string[] => Object.keys(body).filter((key) => !expected.has(key));

/** Any other could not stand in a header as it is. */
const plainKey = /^[\w-]{2,40}$/;
/** So many are named; the rest of a long body is not looked at. */
const keysNamed = 8;

/**
 * The value of the header `Longshore-Warning`, about keys that are ignored and close to one that
 * counts; undefined if nothing looks misspelt.
 */
function warningOf(ignored: readonly string[], known: readonly string[]): string | undefined {
  const words = ignored.flatMap((key) => {
    const name = plainKey.test(key) ? meant(key, known) : undefined;
    return name === undefined ? [] : [`"${key}" is ignored: did you mean "${name}"?`];
  });
  return words.length === 0 ? undefined : words.slice(0, keysNamed).join(' ');
}

const blank = "can't be blank";

/** A field of a create: null counts as absent. */
function take(body: Values, name: FieldName, report: Report): unknown {
  const { isSettable, fallback, parse } = fieldOf(name);
  const value = isSettable && Object.hasOwn(body, name) ? (body[name] ?? undefined) : undefined;
  if (value !== undefined) return parse(value, report);
  return fallback === undefined ? report(blank) : fallback;
}

export function validateCreate(body: unknown): Validated<ContainerSpec> {
  if (!isValues(body)) return notAnObject;
  const { faults, reportOf } = reporter();
  const taken: Record<string, unknown> = {};
  for (const name of shown) taken[name] = take(body, name, reportOf(name));
  const metadata = Object.fromEntries(metadataNames.map((name) => [name, take(body, name, reportOf(name))]));
  if (Object.keys(faults).length > 0) return { ok: false, faults };
  const spec = taken as unknown as ContainerSpec;
  const image = { tag: usualTag(spec), digest: spec.digest };
  return {
    ok: true,
    warning: warningOf(ignoredKeys(body), settable),
    value: Object.assign(spec, image, { pull_policy: usualPullPolicy(image) }, metadataToStore(metadata)),
  };
}

const isChangeable = (field: string): field is keyof ContainerPatch =>
  (changeable as readonly string[]).includes(field);

/**
 * A JSON merge patch of what a container is made from, by the rules of a create; null stays null.
 * The owner merges it, and checks the sum.
 */
export function validateUpdate(body: unknown): Validated<ContainerPatch> {
  if (!isValues(body)) return notAnObject;
  const { faults, reportOf } = reporter();
  const patch: Record<string, unknown> = {};
  for (const [field, value] of Object.entries(body)) {
    const report = reportOf(field);
    if (!isChangeable(field)) report(`can't be changed: ${changeable.join(', ')} can`);
    else patch[field] = value === null ? null : fieldOf(field).parsePatch(value, report);
  }
  return Object.keys(faults).length > 0 ? { ok: false, faults } : { ok: true, value: patch };
}

/** The body of a PUT that is one field: faults are at its keys, or of the whole. */
export const validateField =
  <F extends MetadataName>(name: F) =>
  (body: unknown): Validated<Metadata[F]> => {
    if (!isValues(body)) return notAnObject;
    const { faults, reportOf } = reporter();
    const value = fieldOf(name).parse(body, (fault, key = '_') => reportOf(key)(fault));
    return value === undefined ? { ok: false, faults } : { ok: true, value: value as Metadata[F] };
  };

/** A merge patch of the labels: null removes a key. The owner merges it, and checks the sum. */
export function validateLabelsPatch(body: unknown): Validated<TextsPatch> {
  if (!isValues(body)) return notAnObject;
  const { faults, reportOf } = reporter();
  const patch = containerFields.labels.parsePatch(body, (fault, key = '_') => reportOf(key)(fault));
  return patch === undefined ? { ok: false, faults } : { ok: true, value: patch };
}
