/**
 * Settings as a person gives them (`caps.containers=50`, or a file), merged into what is stored.
 * Keys and values are read by the schema of the API, so that a misspelt one is refused here, with
 * the right one. Pure.
 */
import type { TSchema } from 'typebox';
import { meant } from '../../lib/validation/misspelt.ts';
import { isValues, type Values } from '../../lib/values.ts';
import { WrongUsage } from '../terminal/errors.ts';

/** The part of JSON Schema that declares keys and values. */
interface Form {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly anyOf?: readonly Form[];
  readonly properties?: Readonly<Record<string, Form>>;
  readonly patternProperties?: Readonly<Record<string, Form>>;
}

const formsOf = (form: Form): readonly Form[] => form.anyOf?.flatMap(formsOf) ?? [form];
const pathTo = (path: string, key: string): string => (path === '' ? key : `${path}.${key}`);

/** The key that was meant, or all possible keys. */
function rightOf(wrong: string, right: readonly string[]): string {
  const near = meant(wrong, right);
  return near === undefined ? `it is one of ${right.join(', ')}` : `did you mean ${near}?`;
}

/**
 * Schema of the value at a key.
 * @throws WrongUsage if there is no such key
 */
function below(form: Form, key: string, path: string): Form {
  const objects = formsOf(form).filter(({ type }) => type === 'object');
  for (const { properties = {}, patternProperties = {} } of objects) {
    const found = Object.hasOwn(properties, key)
      ? properties[key]
      : Object.entries(patternProperties).find(([pattern]) => new RegExp(pattern).test(key))?.[1];
    if (found !== undefined) return found;
  }
  const known = objects.flatMap(({ properties = {} }) => Object.keys(properties));
  const where = path === '' ? 'there is no setting' : `${path} has no setting`;
  throw new WrongUsage(`${where} "${key}"${known.length === 0 ? '' : `: ${rightOf(key, known)}`}`);
}

/** @throws WrongUsage if it can't be a value of this form */
function valueIn(form: Form, text: string, path: string): unknown {
  const forms = formsOf(form);
  const has = (type: string): boolean => forms.some((one) => one.type === type);
  const refuse = (what: string): never => {
    throw new WrongUsage(`${path} must be ${what}${has('null') ? ', or null' : ''}, not "${text}"`);
  };
  if (text === 'null' && has('null')) return null;
  if (has('array')) return text.startsWith('[') ? listIn(text, path) : text === '' ? [] : text.split(',');
  if (has('integer')) return /^-?\d{1,16}$/.test(text) ? Number(text) : refuse('a whole number');
  if (has('boolean')) return ['true', 'false'].includes(text) ? text === 'true' : refuse('true or false');
  const words = forms.flatMap((one) => one.enum ?? []);
  if (words.length > 0) return words.includes(text) ? text : refuse(words.join(', '));
  const keys = forms.flatMap(({ properties = {} }) => Object.keys(properties));
  if (has('object')) return refuse(`set by its keys, such as ${pathTo(path, keys[0] ?? 'KEY')}=VALUE`);
  return text;
}

function listIn(text: string, path: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch {
    throw new WrongUsage(`${path} must be a list: a,b or ["a","b"]`);
  }
}

function withAt(values: Values, [key = '', ...rest]: readonly string[], value: unknown): Values {
  if (rest.length === 0) return { ...values, [key]: value };
  const inside = values[key];
  return { ...values, [key]: withAt(isValues(inside) ? inside : {}, rest, value) };
}

/**
 * Applies each `KEY=VALUE` to the values; a later one may undo an earlier one.
 * @throws WrongUsage
 */
export function assigned(schema: TSchema, values: Values, texts: readonly string[]): Values {
  return texts.reduce((before, text) => {
    const at = text.indexOf('=');
    if (at < 1) throw new WrongUsage(`"${text}" must be KEY=VALUE`);
    const keys = text.slice(0, at).split('.');
    const form = keys.reduce(
      (form, key, depth) => below(form, key, keys.slice(0, depth).join('.')),
      schema as unknown as Form,
    );
    return withAt(before, keys, valueIn(form, text.slice(at + 1), keys.join('.')));
  }, values);
}

/** @throws WrongUsage if a key is none of the schema's, at any depth */
export function checkKeys(schema: TSchema, values: Values): void {
  const check = (form: Form, value: unknown, path: string): void => {
    if (!isValues(value)) return;
    for (const [key, one] of Object.entries(value)) check(below(form, key, path), one, pathTo(path, key));
  };
  check(schema, values, '');
}

const textOf = (value: unknown): string => (value === undefined ? 'not set' : JSON.stringify(value));

const hasKeys = (value: unknown): value is Values | undefined => value === undefined || isValues(value);

/** One line for each value that differs: `caps.containers: 20 → 50`. */
export function changesOf(before: Values, after: Values, path = ''): string[] {
  return [...new Set([...Object.keys(before), ...Object.keys(after)])].flatMap((key) => {
    const [old, now] = [before[key], after[key]];
    const at = pathTo(path, key);
    // An unset value counts as a map without keys, null does not.
    if (hasKeys(old) && hasKeys(now)) return changesOf(old ?? {}, now ?? {}, at);
    return textOf(old) === textOf(now) ? [] : [`${at}: ${textOf(old)} → ${textOf(now)}`];
  });
}
