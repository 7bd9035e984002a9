/** Values of Compose files; undefined where they are none. Pure. */
import { parseDuration } from '../../../lib/time/duration.ts';
import { isValues, type Values } from '../../../lib/values.ts';
import { limits } from '../../../schemas/limits.ts';
import { stopSignals } from '../../../schemas/words.ts';
import { memoryIn } from '../../terminal/quantities.ts';

export const mapOf = (value: unknown): Values | undefined => (isValues(value) ? value : undefined);

export const listOf = (value: unknown): readonly unknown[] | undefined => (Array.isArray(value) ? value : undefined);

/** `0.5` → `0.5`, `2` → `2.0`; more than three decimals are rounded; 0: no limit is set. */
export function cpusText(value: unknown): string | undefined {
  const text = String(value);
  if (!/^\d+(?:\.\d*)?$|^\.\d+$/.test(text)) return undefined;
  const rounded = String(Number(Number(text).toFixed(3)));
  return rounded.includes('.') ? rounded : `${rounded}.0`;
}

/** `512mb` → `512m`, as go-units reads it; 0: no limit is set. */
export function memoryText(value: unknown): string | undefined {
  const text = memoryIn(String(value).trim());
  return /^\d+[bkmg]?$/.test(text) ? text : undefined;
}

/** Zero is how Compose says that there is no limit. */
export const isZero = (text: string | undefined): boolean => text !== undefined && Number.parseFloat(text) === 0;

/** `1m30s` → 90, `1.5m` → 90; parts of a second are rounded up. */
export function secondsOf(value: unknown): number | undefined {
  const text = String(value);
  if (text === '0') return 0;
  const ms = parseDuration(text);
  return ms === undefined ? undefined : Math.ceil(ms / 1000);
}

/** `3` and `"3"`. */
export function countOf(value: unknown): number | undefined {
  const number = typeof value === 'string' && /^\d+$/.test(value) ? Number(value) : value;
  return typeof number === 'number' && Number.isInteger(number) && number >= 0 ? number : undefined;
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

/** The words of a health check's `test`. */
export function commandOf(test: unknown): string[] | undefined {
  if (typeof test === 'string') return ['/bin/sh', '-c', test];
  if (!Array.isArray(test) || test.length < 2) return undefined;
  const [kind, ...words] = test.map(String);
  if (kind === 'CMD-SHELL') return words.length === 1 ? ['/bin/sh', '-c', ...words] : undefined;
  return kind === 'CMD' ? words : undefined;
}

export interface ReadPorts {
  readonly ports: readonly (number | string)[];
  /** The port of the host that the file asks for. */
  readonly published?: string;
  /** The address of the host that the file keeps it to. */
  readonly address?: string;
}

/** `"127.0.0.1:8080-8081:80-81/udp"`, `80`, or `{target: 80, published: 8080, protocol: tcp}`. */
export function portsOf(value: unknown): ReadPorts | undefined {
  const map = mapOf(value);
  const text = map === undefined ? String(value) : `${String(map['target'])}/${String(map['protocol'] ?? 'tcp')}`;
  const [, host = '', from = '', to = from, given = 'tcp'] =
    /^(?:(.*):)?(\d{1,5})(?:-(\d{1,5}))?(?:\/(tcp|udp))?$/i.exec(text) ?? [];
  const count = Number(to) - Number(from) + 1;
  if (from === '' || count < 1 || count > limits.ports) return undefined;
  const protocol = given.toLowerCase();
  const numbers = Array.from({ length: count }, (_, at) => Number(from) + at);
  // `[::1]:8080`, `127.0.0.1:`, `8080`.
  const [, ip = '', asked = ''] = /^(?:(.*):)?([^:]*)$/.exec(host) ?? [];
  const address = map === undefined ? ip : String(map['host_ip'] ?? '');
  const published = map === undefined ? asked : String(map['published'] ?? '');
  return {
    ports: numbers.map((number) => (protocol === 'tcp' ? number : `${number}/${protocol}`)),
    ...(published === '' ? {} : { published }),
    ...(address === '' ? {} : { address }),
  };
}

/** `["A=1", "B"]` or `{A: 1, B: null}`: the value of one without is null. */
export function pairsOf(value: unknown): readonly (readonly [name: string, value: unknown])[] | undefined {
  if (!Array.isArray(value)) return mapOf(value) && Object.entries(mapOf(value) ?? {});
  return value.map((item) => {
    const text = String(item);
    const at = text.indexOf('=');
    return at < 0 ? [text, null] : [text.slice(0, at), text.slice(at + 1)];
  });
}
