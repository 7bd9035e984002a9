/**
 * Kinds of values that the fields of a container have: how each is documented, checked, stored,
 * sent, merged and compared. Pure.
 */
import Type, { type TSchema, type TUnsafe } from 'typebox';
import { nullable } from '../nullable.ts';

/**
 * Reports a fault of a field, or of a place below it: the name of a variable, the index of a port.
 * Returns undefined, so that a check can return the call.
 */
export type Report = (message: string, ...below: readonly string[]) => undefined;

/** `T`: a value as a container has it. `P`: as a JSON merge patch (RFC 7396) gives it. */
export interface Kind<T, P = T> {
  /** As a create gives it. */
  readonly given: TUnsafe<NonNullable<T>>;
  readonly patch: TUnsafe<P>;
  /** In answers, and between our own programs. */
  readonly shown: TUnsafe<T>;
  /** True if a stored value has its type. By hand: a load checks a hundred thousand records. */
  readonly isStored: (value: unknown) => boolean;
  /** A value that is given, neither undefined nor null. Undefined beside a fault. */
  readonly parse: (value: unknown, report: Report) => T | undefined;
  readonly parsePatch: (value: unknown, report: Report) => P | undefined;
  /** A value after a patch. Where null takes a field back, `before` is its default. */
  readonly merged: (before: T, patch: P) => T;
  /** The patch that makes one value of another. */
  readonly patchBetween: (before: T, after: T) => P;
  /** Faults that only the merged value shows. */
  readonly faultsOf: (value: T) => readonly string[];
  /** Equal as JSON for values that mean the same. */
  readonly canonical: (value: T) => unknown;
}

/** Keeps the object: a schema that has a name in the API document is known by its identity. */
const as = <T>(schema: TSchema): TUnsafe<T> => schema as TUnsafe<T>;

/** A value that a patch replaces as a whole. */
type Whole<T> = Pick<Kind<T>, 'shown' | 'isStored' | 'parse'> & {
  readonly given: TSchema;
  readonly canonical?: (value: T) => unknown;
};

function whole<T>({ given, shown, isStored, parse, canonical = (value) => value }: Whole<T>): Kind<T> {
  // A default and a description are about creates.
  const { default: _default, description: _description, ...patch } = given as { default?: T; description?: string };
  return {
    given: given as TUnsafe<NonNullable<T>>,
    patch: as<T>(patch),
    shown,
    isStored,
    parse,
    parsePatch: parse,
    merged: (_before, next) => next,
    patchBetween: (_before, after) => after,
    faultsOf: () => [],
    canonical,
  };
}

export interface TextRules<T extends string> {
  /** As the API document shows it in a create. */
  readonly given: TSchema;
  readonly shown?: TUnsafe<T>;
  readonly pattern: string;
  /** Message about a text that the pattern refuses. */
  readonly form: string;
  /** A longer text is reported before the pattern is tried. */
  readonly maxChars?: number;
  /** Fault of a text, looked for before everything else, or after it. */
  readonly first?: (text: string) => string | undefined;
  readonly last?: (text: string) => string | undefined;
}

export function text<T extends string = string>(rules: TextRules<T>): Kind<T> {
  const { given, shown = as<T>(Type.String()), form, maxChars = Infinity, first, last } = rules;
  const pattern = new RegExp(rules.pattern);
  const faultOf = (value: string): string | undefined =>
    first?.(value) ??
    (value.length > maxChars ? `must be at most ${maxChars} characters` : undefined) ??
    (pattern.test(value) ? last?.(value) : form);
  return whole<T>({
    given,
    shown,
    isStored: (value) => typeof value === 'string',
    parse: (value, report) => {
      if (typeof value !== 'string') return report('must be a string');
      const fault = faultOf(value);
      return fault === undefined ? (value as T) : report(fault);
    },
  });
}

/** A text from a list that our programs choose from. */
export const choice = <T extends string>(shown: TSchema): Kind<T> =>
  whole<T>({
    given: shown,
    shown: as<T>(shown),
    isStored: (value) => typeof value === 'string',
    parse: (_value, report) => report('is chosen by the platform'),
  });

/** The value may be absent, which is null. */
export const orNull = <T>(kind: Kind<T>): Kind<T | null> =>
  ({
    ...kind,
    shown: as<T | null>(nullable(kind.shown)),
    isStored: (value) => value === null || kind.isStored(value),
  }) as Kind<T | null>;

const loneSurrogate = /\p{Surrogate}/u;

export const isMap = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === 'object' && value !== null && !Array.isArray(value);

export const flag = (description: string): Kind<boolean> =>
  whole<boolean>({
    given: Type.Boolean({ description }),
    shown: as<boolean>(Type.Boolean()),
    isStored: (value) => typeof value === 'boolean',
    parse: (value, report) => (typeof value === 'boolean' ? value : report('must be true or false')),
  });

export interface WordsRules {
  readonly maxItems: number;
  /** Of all words together. */
  readonly maxBytes: number;
  readonly description: string;
}

/** A program with its arguments. */
export const words = ({ maxItems, maxBytes, description }: WordsRules): Kind<readonly string[]> =>
  whole<readonly string[]>({
    given: Type.Array(Type.String(), { maxItems, description }),
    shown: as<readonly string[]>(Type.Array(Type.String())),
    isStored: (value) => Array.isArray(value) && value.every((one) => typeof one === 'string'),
    parse: (value, report) => {
      if (!Array.isArray(value)) return report('must be a list of strings, like ["sh", "-c", "date"]');
      if (value.length > maxItems) return report(`must be at most ${maxItems} strings`);
      let bytes = 0;
      for (const [at, one] of value.entries()) {
        if (typeof one !== 'string') return report('must be a string', String(at));
        if (one.includes('\0')) return report("can't contain NUL", String(at));
        if (loneSurrogate.test(one)) return report('must be valid Unicode', String(at));
        bytes += Buffer.byteLength(one);
      }
      return bytes > maxBytes ? report(`must be at most ${maxBytes} bytes in all`) : (value as string[]);
    },
  });

export interface LabelsRules {
  readonly pattern: string;
  readonly form: string;
  readonly maxItems: number;
  readonly description: string;
}

/** Names, each at most once; their order does not matter. */
export function labels({ pattern, form, maxItems, description }: LabelsRules): Kind<readonly string[]> {
  const known = new RegExp(pattern);
  return whole<readonly string[]>({
    given: Type.Array(Type.String({ pattern }), { maxItems, uniqueItems: true, description }),
    shown: as<readonly string[]>(Type.Array(Type.String())),
    isStored: (value) => Array.isArray(value) && value.every((one) => typeof one === 'string'),
    parse: (value, report) => {
      if (!Array.isArray(value)) return report('must be a list of names');
      if (value.length > maxItems) return report(`must be at most ${maxItems} names`);
      const faults = value.flatMap((one, at): (readonly [string, string])[] => {
        if (typeof one !== 'string' || !known.test(one)) return [[form, String(at)]];
        return value.indexOf(one) < at ? [['must be distinct', String(at)]] : [];
      });
      for (const [message, at] of faults) report(message, at);
      return faults.length === 0 ? (value as string[]) : undefined;
    },
    canonical: (value) => [...value].sort(),
  });
}

export type Texts = Readonly<Record<string, string>>;
export type TextsPatch = Readonly<Record<string, string | null>>;

export interface MapRules {
  readonly key: string;
  /** Message about a key that the pattern refuses. */
  readonly form: string;
  /** Keys that begin with it are the platform's. */
  readonly reserved?: string;
  readonly maxKeys: number;
  readonly maxValueBytes: number;
  readonly maxTotalBytes?: number;
  readonly description?: string;
  /** Fault of a value, looked for after everything else. */
  readonly last?: (value: string, name: string) => string | undefined;
}

/** Texts by key. A patch changes the keys that it names, and removes those that are null. */
export function map(rules: MapRules): Kind<Texts, TextsPatch> {
  const { key, form, reserved, maxKeys, maxValueBytes, maxTotalBytes = Infinity, last, ...documented } = rules;
  const pattern = new RegExp(key);
  const bounds = { maxProperties: maxKeys, additionalProperties: false } as const;
  const tooMany = `must be at most ${maxKeys} keys`;
  const tooLarge = `must be at most ${maxTotalBytes} bytes in all`;

  function parseWith(value: unknown, report: Report, mayRemove: boolean): TextsPatch | undefined {
    if (!isMap(value)) return report('must be a map of strings');
    // With too many keys, the values are not looked at.
    if (Object.keys(value).length > maxKeys) return report(tooMany);
    let isRight = true;
    const fault: Report = (...words) => {
      isRight = false;
      return report(...words);
    };
    let totalBytes = 0;
    for (const [name, one] of Object.entries(value)) {
      if (!pattern.test(name)) fault(form, name);
      else if (reserved !== undefined && name.startsWith(reserved))
        fault(`keys that begin with "${reserved}" are the platform's`, name);
      if (one === null && mayRemove) continue;
      if (typeof one !== 'string') {
        fault('values must be strings', name);
        continue;
      }
      const bytes = Buffer.byteLength(one);
      totalBytes += bytes;
      if (bytes > maxValueBytes) fault(`values must be at most ${maxValueBytes} bytes`, name);
      if (one.includes('\0')) fault("values can't contain NUL", name);
      if (loneSurrogate.test(one)) fault('values must be valid Unicode', name);
      const wrong = last?.(one, name);
      if (wrong !== undefined) fault(wrong, name);
    }
    if (totalBytes > maxTotalBytes) fault(tooLarge);
    // Passed on as it was parsed: a copy by assignment would lose a key called `__proto__`, which
    // is a legal name.
    return isRight ? (value as TextsPatch) : undefined;
  }

  return {
    given: as<Texts>(Type.Record(Type.String({ pattern: key }), Type.String(), { ...bounds, ...documented })),
    patch: as<TextsPatch>(Type.Record(Type.String({ pattern: key }), nullable(Type.String()), bounds)),
    shown: as<Texts>(Type.Record(Type.String(), Type.String())),
    isStored: (value) =>
      typeof value === 'object' && value !== null && Object.values(value).every((one) => typeof one === 'string'),
    parse: (value, report) => parseWith(value, report, false) as Texts | undefined,
    parsePatch: (value, report) => parseWith(value, report, true),
    merged: (before, patch) => {
      const next = new Map(Object.entries(before));
      for (const [name, value] of Object.entries(patch)) {
        if (value === null) next.delete(name);
        else next.set(name, value);
      }
      return Object.fromEntries(next);
    },
    patchBetween: (before, after) =>
      Object.fromEntries([
        ...Object.entries(after).filter(([name, value]) => before[name] !== value),
        ...Object.keys(before).flatMap((name) => (Object.hasOwn(after, name) ? [] : ([[name, null]] as const))),
      ]),
    faultsOf: (value) => {
      const texts = Object.values(value);
      const bytes = texts.reduce((sum, one) => sum + Buffer.byteLength(one), 0);
      return [...(texts.length > maxKeys ? [tooMany] : []), ...(bytes > maxTotalBytes ? [tooLarge] : [])];
    },
    canonical: (value) => Object.entries(value).sort(([one], [other]) => (one < other ? -1 : 1)),
  };
}

/** A container's port: `80` (tcp), `"80/tcp"` or `"53/udp"`. */
export type Port = number | string;

const portMax = 65_535;
const portText = /^([1-9]\d{0,4})(?:\/(tcp|udp))?$/;
const hostBinding = 'host bindings are not allowed';
const portForm = 'must be integers from 1 to 65535, or strings like "53/udp"';

/** A port with its protocol, or the fault of the value. */
function identityOf(value: unknown): { readonly identity: string } | { readonly fault: string } {
  if (typeof value === 'number')
    return Number.isInteger(value) && value >= 1 && value <= portMax
      ? { identity: `${value}/tcp` }
      : { fault: portForm };
  if (isMap(value) || (typeof value === 'string' && value.includes(':'))) return { fault: hostBinding };
  const [, number, protocol = 'tcp'] = (typeof value === 'string' && portText.exec(value)) || [];
  return number !== undefined && Number(number) <= portMax
    ? { identity: `${number}/${protocol}` }
    : { fault: portForm };
}

/** Ports, each at most once. @param port the schema of one */
export const ports = (port: TSchema, maxItems: number): Kind<readonly Port[]> =>
  whole<readonly Port[]>({
    given: Type.Array(port, { maxItems, uniqueItems: true }),
    shown: as<readonly Port[]>(Type.Array(port)),
    isStored: (value) =>
      Array.isArray(value) && value.every((one) => typeof one === 'string' || typeof one === 'number'),
    parse: (value, report) => {
      // `{"80": 8080}` is how Docker itself writes a binding.
      if (isMap(value)) return report(hostBinding);
      if (!Array.isArray(value)) return report('must be a list');
      const faults: (readonly [message: string, ...below: string[]])[] = [];
      if (value.length > maxItems) faults.push([`must be at most ${maxItems} ports`]);
      const seen = new Set<string>();
      for (const [at, one] of value.slice(0, maxItems + 1).entries()) {
        const judged = identityOf(one);
        if ('fault' in judged) faults.push([judged.fault, String(at)]);
        else if (seen.has(judged.identity)) faults.push(['must be distinct', String(at)]);
        else seen.add(judged.identity);
      }
      for (const fault of faults) report(...fault);
      return faults.length === 0 ? (value as Port[]) : undefined;
    },
  });

/** The kind of a setting, and its default; null where it has none. */
interface Setting<T> {
  readonly kind: Pick<Kind<T>, 'given' | 'shown'>;
  readonly fallback: T | null;
}
interface AnySetting {
  readonly kind: Kind<unknown>;
  readonly fallback: unknown;
}

type Settings = Readonly<Record<string, unknown>>;

/**
 * An object of settings, each of a kind; it holds only those that are not the default. `null` is
 * the default.
 */
export function object<T extends object>(table: { readonly [F in keyof T]-?: Setting<NonNullable<T[F]>> }): Kind<T> {
  const settings = Object.entries(table) as unknown as (readonly [name: string, AnySetting])[];
  const named = new Map(settings);
  const isDefault = ({ kind, fallback }: AnySetting, value: unknown): boolean =>
    value === null ||
    (fallback !== null && JSON.stringify(kind.canonical(value)) === JSON.stringify(kind.canonical(fallback)));
  /** Without those that are the default. */
  const lean = (value: Settings): Settings =>
    Object.fromEntries(
      settings.flatMap(([name, setting]) =>
        value[name] === undefined || isDefault(setting, value[name]) ? [] : [[name, value[name]]],
      ),
    );
  const schema = (schemaOf: (kind: Kind<unknown>) => TSchema, isOpen: boolean): TUnsafe<T> =>
    as<T>(
      Type.Object(
        Object.fromEntries(settings.map(([name, { kind }]) => [name, Type.Optional(schemaOf(kind))])),
        isOpen ? {} : { additionalProperties: false },
      ),
    );

  function parseWith(value: unknown, report: Report, isPatch: boolean): Settings | undefined {
    if (!isMap(value)) return report('must be an object');
    const parsed: Record<string, unknown> = {};
    let isRight = true;
    for (const [name, one] of Object.entries(value)) {
      const kind = named.get(name)?.kind;
      const fault: Report = (message, ...below) => {
        isRight = false;
        return report(message, name, ...below);
      };
      if (kind === undefined) fault(`is no setting: ${[...named.keys()].join(', ')} are`);
      else if (one === null) parsed[name] = null;
      else parsed[name] = isPatch ? kind.parsePatch(one, fault) : kind.parse(one, fault);
    }
    if (!isRight) return undefined;
    return isPatch ? parsed : lean(parsed);
  }

  const valueOf = (value: Settings, name: string): unknown => value[name] ?? named.get(name)?.fallback;
  const kind: Kind<Settings> = {
    given: schema(({ given }) => nullable(given), false) as TUnsafe<Settings>,
    patch: schema(({ patch }) => nullable(patch), false) as TUnsafe<Settings>,
    shown: schema(({ shown }) => shown, true) as TUnsafe<Settings>,
    isStored: (value) =>
      isMap(value) && settings.every(([name, one]) => value[name] === undefined || one.kind.isStored(value[name])),
    parse: (value, report) => parseWith(value, report, false),
    parsePatch: (value, report) => parseWith(value, report, true),
    merged: (before, patch) =>
      lean({
        ...before,
        ...Object.fromEntries(
          Object.entries(patch).map(([name, one]) => {
            const base = valueOf(before, name);
            return [name, one === null || base == null ? one : named.get(name)!.kind.merged(base, one)];
          }),
        ),
      }),
    patchBetween: (before, after) =>
      Object.fromEntries(
        settings.flatMap(([name, one]) => {
          const [old, next] = [before[name], after[name]];
          if (JSON.stringify(old && one.kind.canonical(old)) === JSON.stringify(next && one.kind.canonical(next)))
            return [];
          return [[name, old === undefined || next === undefined ? (next ?? null) : one.kind.patchBetween(old, next)]];
        }),
      ),
    faultsOf: (value) =>
      settings.flatMap(([name, one]) =>
        value[name] === undefined ? [] : one.kind.faultsOf(value[name]).map((fault) => `${name} ${fault}`),
      ),
    canonical: (value) =>
      settings.flatMap(([name, one]) => (value[name] === undefined ? [] : [[name, one.kind.canonical(value[name])]])),
  };
  return kind as unknown as Kind<T>;
}
