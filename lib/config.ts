/**
 * Configuration from the environment. A program's table `settings` names every variable, its form
 * and its default; docs/configuration.md is generated from these tables.
 */
import { readFileSync } from 'node:fs';
import { isIP, isIPv6 } from 'node:net';
import { durationText, parseDuration } from './time/duration.ts';

export interface Setting<T> {
  /** `undefined` if the text does not have this form. */
  readonly parse: (text: string) => T | undefined;
  readonly form: string;
  readonly doc: string;
  /** Absent if the setting is required. */
  readonly fallback?: { readonly value: T; /** As a variable has it; by default `String`. */ readonly text?: string };
  /** Former names, the latest first; one that starts with `_` is what followed the present name. */
  readonly replaces?: readonly string[];
}

export type Settings = Readonly<Record<string, Setting<unknown>>>;
export type Configuration<S extends Settings> = { readonly [K in keyof S]: S[K] extends Setting<infer T> ? T : never };

export class ConfigurationError extends Error {
  readonly faults: readonly string[];

  constructor(faults: readonly string[]) {
    super(`configuration: ${faults.join('; ')}`);
    this.faults = faults;
    this.name = 'ConfigurationError';
  }
}

type Fallback<T> = { fallback?: T };

/** A setting that had other names: a program that finds one of these ends at its start. */
export const renamed = <T>(now: Setting<T>, ...replaces: readonly string[]): Setting<T> => ({ ...now, replaces });

function setting<T>(
  form: string,
  doc: string,
  parse: (text: string) => T | undefined,
  options: Fallback<T>,
): Setting<T> {
  return 'fallback' in options ? { parse, form, doc, fallback: { value: options.fallback } } : { parse, form, doc };
}

export const text = (doc: string, options: Fallback<string> = {}): Setting<string> =>
  setting('text', doc, (value) => (value === '' ? undefined : value), options);

/** @param form the form that a person writes @param isValid true for a text of that form */
export const checkedText = (doc: string, form: string, isValid: (text: string) => boolean): Setting<string> =>
  setting(form, doc, (value) => (isValid(value) ? value : undefined), {});

/** `null` for `off`, which is the default. */
export const offOr = (doc: string, form: string, isValid: (text: string) => boolean): Setting<string | null> => ({
  parse: (value) => (value === 'off' ? null : isValid(value) ? value : undefined),
  form: `off, or ${form}`,
  doc,
  fallback: { value: null, text: 'off' },
});

export const optionalText = (doc: string): Setting<string | undefined> =>
  setting<string | undefined>('text', doc, (value) => value, { fallback: undefined });

/** @param bounds `off`: the number that `off` stands for; if absent, `off` is refused */
export const integer = (
  doc: string,
  bounds: { min: number; max: number; off?: number } & Fallback<number>,
): Setting<number> =>
  setting(
    `${bounds.off === undefined ? '' : 'off, or '}integer ${bounds.min}–${bounds.max}`,
    doc,
    (value) => {
      if (value === 'off') return bounds.off;
      const number = Number(value);
      return /^-?\d+$/.test(value) && number >= bounds.min && number <= bounds.max ? number : undefined;
    },
    bounds,
  );

export const optionalInteger = (doc: string, bounds: { min: number; max: number }): Setting<number | undefined> => {
  const { form, parse } = integer(doc, bounds);
  return setting<number | undefined>(`${form}, or absent`, doc, parse, { fallback: undefined });
};

/**
 * A length of time, in milliseconds.
 * @param bounds `orOff`: `off` is 0, which means never; `replaces`: by default `_MS`
 */
export function duration(
  doc: string,
  bounds: { min: number; max: number; fallback: number; orOff?: boolean; replaces?: string },
): Setting<number> {
  const { min, max, fallback, orOff = false, replaces = '_MS' } = bounds;
  const such = durationText(orOff && fallback === 0 ? Math.min(Math.max(min, 60_000), max) : fallback);
  return {
    form: `${orOff ? 'off, or ' : ''}a duration of ${durationText(min)} to ${durationText(max)}, such as ${such}`,
    doc,
    parse: (value) => {
      if (orOff && value === 'off') return 0;
      const ms = parseDuration(value);
      return ms !== undefined && Number.isInteger(ms) && ms >= min && ms <= max ? ms : undefined;
    },
    fallback: { value: fallback, text: orOff && fallback === 0 ? 'off' : durationText(fallback) },
    replaces: [replaces],
  };
}

export const flag = (doc: string, fallback: boolean): Setting<boolean> =>
  setting('true or false', doc, (value) => (value === 'true' ? true : value === 'false' ? false : undefined), {
    fallback,
  });

export const choice = <const T extends string>(doc: string, values: readonly T[], fallback: T): Setting<T> =>
  setting(values.join(' or '), doc, (value) => values.find((known) => known === value), { fallback });

/** The items between commas, without empty ones. */
export const items = (value: string): string[] =>
  value
    .split(',')
    .map((item) => item.trim())
    .filter((item) => item !== '');

export const list = (doc: string, options: Fallback<readonly string[]> = {}): Setting<readonly string[]> =>
  setting('list, comma-separated', doc, items, options);

const withoutUser = 'without user and password';
export const httpUrlForm = `an http or https URL ${withoutUser}`;

/** Without user and password, because `fetch` refuses them in an error that quotes the URL. */
export function isHttpUrl(value: string): boolean {
  if (!URL.canParse(value)) return false;
  const { protocol, username, password } = new URL(value);
  return (protocol === 'http:' || protocol === 'https:') && username === '' && password === '';
}

export const httpUrl = (doc: string, options: Fallback<string> = {}): Setting<string> =>
  setting(httpUrlForm, doc, (value) => (isHttpUrl(value) ? value : undefined), options);

export const optionalHttpUrl = (doc: string): Setting<string | undefined> =>
  setting<string | undefined>(httpUrlForm, doc, (value) => (isHttpUrl(value) ? value : undefined), {
    fallback: undefined,
  });

/** An IP address and a port. */
export const optionalEndpoint = (
  doc: string,
): Setting<{ readonly address: string; readonly port: number } | undefined> =>
  setting(
    'an IP address and a port, such as 203.0.113.7:51820 or [2001:db8::7]:51820',
    doc,
    (value) => {
      const [, inBrackets, plain, digits] = /^(?:\[([^\]]+)\]|([\d.]+)):(\d{1,5})$/.exec(value) ?? [];
      const address = inBrackets ?? plain ?? '';
      const port = Number(digits);
      const isAddress = isIP(address) === (inBrackets === undefined ? 4 : 6) && !address.includes('%');
      return isAddress && port >= 1 && port <= 65_535 ? { address, port } : undefined;
    },
    { fallback: undefined },
  );

function isNatsServer(value: string): boolean {
  const address = value.replace(/^[a-z]+:\/\//i, '');
  return !address.includes('@') && (isIPv6(address) || URL.canParse(`http://${address}`));
}

/** Without user and password, because the client ignores them and hosts receive these addresses. */
export const natsServers = (doc: string, fallback: readonly string[]): Setting<readonly string[]> =>
  setting(
    `a comma-separated list of NATS servers ${withoutUser}`,
    doc,
    (value) => (items(value).every(isNatsServer) ? items(value) : undefined),
    { fallback },
  );

export const number = (doc: string, bounds: { min: number; max: number; fallback: number }): Setting<number> =>
  setting(
    `number ${bounds.min}–${bounds.max}`,
    doc,
    (value) => {
      const parsed = Number(value);
      return value.trim() !== '' && parsed >= bounds.min && parsed <= bounds.max ? parsed : undefined;
    },
    { fallback: bounds.fallback },
  );

/** The names that a setting had, the latest first. */
const formerNames = (name: string, replaces: readonly string[] = []): readonly string[] =>
  replaces.map((replaced) => (replaced.startsWith('_') ? `${name}${replaced}` : replaced));

/**
 * Reads every setting of the table; an empty variable counts as absent.
 * @throws ConfigurationError that names all faults at once.
 */
export function readSettings<S extends Settings>(settings: S, env: NodeJS.ProcessEnv): Configuration<S> {
  const faults: string[] = [];
  const values: Record<string, unknown> = {};
  for (const [name, { parse, form, fallback, replaces }] of Object.entries(settings)) {
    for (const former of formerNames(name, replaces)) {
      if ((env[former] ?? '') !== '') faults.push(`${former} is now ${name}: ${form}`);
    }
    const given = env[name];
    if (given === undefined || given === '') {
      if (fallback === undefined) faults.push(`${name} is required (${form})`);
      else values[name] = fallback.value;
      continue;
    }
    const value = parse(given);
    if (value === undefined) faults.push(`${name} must be ${form}`);
    else values[name] = value;
  }
  if (faults.length > 0) throw new ConfigurationError(faults);
  return values as Configuration<S>;
}

/**
 * The content of a file that a setting names, trimmed.
 * @throws ConfigurationError if the file cannot be read.
 */
export function readSettingFile(name: string, path: string): string {
  try {
    return readFileSync(path, 'utf8').trim();
  } catch (error) {
    throw new ConfigurationError([`${name}: ${path} cannot be read (${(error as NodeJS.ErrnoException).code})`]);
  }
}
