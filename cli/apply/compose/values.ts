/** Parsers of values in Compose files; `undefined` for a value of another form. Pure. */
import { isIP } from 'node:net';
import { parseDuration } from '../../../lib/time/duration.ts';
import { isValues, type Values } from '../../../lib/values.ts';
import { limits } from '../../../schemas/limits.ts';
import { stopSignals } from '../../../schemas/words.ts';
import { bytesIn, memoryIn } from '../../terminal/quantities.ts';

export const mapOf = (value: unknown): Values | undefined => (isValues(value) ? value : undefined);

export const withoutAbsent = (values: Values): Values =>
  Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));

export const listOf = (value: unknown): readonly unknown[] | undefined => (Array.isArray(value) ? value : undefined);

/** A list of texts; numbers and booleans count as they are written. */
export const textsOf = (value: unknown): readonly string[] | undefined =>
  listOf(value)?.every((one) => typeof one !== 'object') === true ? listOf(value)?.map(String) : undefined;

/** `0.5` → `0.5`, `2` → `2.0`. Rounds to thousandths, with 0.001 as the least; 0 means no limit. */
export function cpusText(value: unknown): string | undefined {
  const text = String(value);
  if (!/^(?:\d+\.?\d*|\.\d+)(?:e[+-]?\d+)?$/i.test(text)) return undefined;
  const cpus = Number(text);
  const rounded = String(cpus === 0 ? 0 : Math.max(0.001, Number(cpus.toFixed(3))));
  return rounded.includes('.') ? rounded : `${rounded}.0`;
}

/** `512mb` → `512m`, as go-units reads it; 0 means no limit. */
export function memoryText(value: unknown): string | undefined {
  const text = memoryIn(String(value));
  return /^\d+[bkmg]?$/.test(text) ? text : undefined;
}

/** True for the same size in two forms, such as `1g` and `1024m`. */
export const sameAmount = (one: string, other: string): boolean => bytesIn(one) === bytesIn(other);

/** Zero means no limit in Compose. */
export const isZero = (text: string | undefined): boolean => text !== undefined && Number.parseFloat(text) === 0;

/** `1m30s` → 90, `1.5m` → 90; parts of a second are rounded up. */
export function secondsOf(value: unknown): number | undefined {
  const text = String(value).replace(/^\+/, '');
  if (text === '0') return 0;
  const ms = parseDuration(text);
  return ms === undefined ? undefined : Math.ceil(ms / 1000);
}

/** Kind of a pull policy, or `undefined`. `sometimes` looks at the tag again after a time. */
export function pullPolicyOf(value: unknown): 'always' | 'missing' | 'never' | 'build' | 'sometimes' | undefined {
  const text = String(value);
  if (text === 'daily' || text === 'weekly') return 'sometimes';
  if (text.startsWith('every_')) return secondsOf(text.slice('every_'.length)) === undefined ? undefined : 'sometimes';
  if (text === 'missing' || text === 'if_not_present') return 'missing';
  return (['always', 'never', 'build'] as const).find((one) => one === text);
}

/** `3` and `"3"`. */
export function countOf(value: unknown): number | undefined {
  const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  return typeof number === 'number' && Number.isInteger(number) && number >= 0 ? number : undefined;
}

/** Accepts quotes, and the booleans of YAML 1.1. */
export function booleanOf(value: unknown): boolean | undefined {
  const text = String(value).toLowerCase();
  if (['true', 'yes', 'y', 'on'].includes(text)) return true;
  return ['false', 'no', 'n', 'off'].includes(text) ? false : undefined;
}

const signalNumbers: Readonly<Record<string, string>> = {
  1: 'SIGHUP',
  2: 'SIGINT',
  3: 'SIGQUIT',
  6: 'SIGABRT',
  9: 'SIGKILL',
  10: 'SIGUSR1',
  12: 'SIGUSR2',
  15: 'SIGTERM',
  28: 'SIGWINCH',
  37: 'SIGRTMIN+3',
};

/** `INT`, `sigint` and `2` → `SIGINT`, as Docker reads them. */
export function signalOf(value: unknown): string | undefined {
  const text = String(value).toUpperCase();
  const name = signalNumbers[text] ?? (text.startsWith('SIG') ? text : `SIG${text}`);
  return stopSignals.find((signal) => signal === name);
}

/** The command of a health check's `test`. */
export function commandOf(test: unknown): string[] | undefined {
  if (typeof test === 'string') return ['/bin/sh', '-c', test];
  if (!Array.isArray(test) || test.length < 2) return undefined;
  const [kind, ...words] = test.map(String);
  if (kind === 'CMD-SHELL') return ['/bin/sh', '-c', ...words];
  return kind === 'CMD' ? words : undefined;
}

export interface ReadPorts {
  readonly ports: readonly (number | string)[];
  /** The host port that the file asks for. */
  readonly published?: string;
  /** The host address that the file restricts it to. */
  readonly address?: string;
}

const rangeIn = (text: string): readonly [from: number, to: number] | undefined => {
  const [, from, to = from] = /^(\d{1,5})(?:-(\d{1,5}))?$/.exec(text) ?? [];
  return from === undefined || Number(to) < Number(from) ? undefined : [Number(from), Number(to)];
};

/** `"127.0.0.1:8080-8081:80-81/udp"`, `80`, or `{target: 80, published: 8080, protocol: tcp}`. */
export function portsOf(value: unknown): ReadPorts | undefined {
  const map = mapOf(value);
  const text = map === undefined ? String(value) : `${String(map['target'])}/${String(map['protocol'] ?? 'tcp')}`;
  const [, host = '', target = '', given = ''] = /^(?:(.*):)?([\d-]+)(?:\/(tcp|udp)?)?$/i.exec(text) ?? [];
  // `[::1]:8080`, `::1:8080`, `127.0.0.1:`, `8080`.
  const [, ip = '', asked = ''] = /^(?:(.*):)?([^:]*)$/.exec(host) ?? [];
  const address = map === undefined ? ip : String(map['host_ip'] ?? '');
  const published = map === undefined ? asked : String(map['published'] ?? '');
  const [from, to] = rangeIn(target) ?? [];
  if (from === undefined || to === undefined || to - from >= limits.ports) return undefined;
  const bound = published === '' ? undefined : rangeIn(published);
  // One port of a range may be chosen; several need as many.
  const isMatched = bound === undefined ? published === '' : from === to || bound[1] - bound[0] === to - from;
  if (!isMatched || (address !== '' && isIP(address.replace(/^\[(.*)\]$/, '$1')) === 0)) return undefined;
  const protocol = given.toLowerCase() || 'tcp';
  const numbers = Array.from({ length: to - from + 1 }, (_, at) => from + at);
  return {
    ports: numbers.map((number) => (protocol === 'tcp' ? number : `${number}/${protocol}`)),
    ...(published === '' ? {} : { published }),
    ...(address === '' ? {} : { address }),
  };
}

/** Pairs of `["A=1", "B"]` or `{A: 1, B: null}`; the value of `B` is null. */
export function pairsOf(value: unknown): readonly (readonly [name: string, value: unknown])[] | undefined {
  if (!Array.isArray(value)) return mapOf(value) && Object.entries(mapOf(value) ?? {});
  if (value.some((item) => typeof item === 'object')) return undefined;
  return value.map((item) => {
    const text = String(item);
    const at = text.indexOf('=');
    return at < 0 ? [text, null] : [text.slice(0, at), text.slice(at + 1)];
  });
}
