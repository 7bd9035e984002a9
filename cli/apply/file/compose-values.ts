/** Values of Compose files; undefined where they are none. Pure. */
import { isValues, type Values } from '../../../lib/values.ts';
import { limits } from '../../../schemas/limits.ts';

export const mapOf = (value: unknown): Values | undefined => (isValues(value) ? value : undefined);

export const listOf = (value: unknown): readonly unknown[] | undefined => (Array.isArray(value) ? value : undefined);

/** `0.5` → `0.5`, `2` → `2.0`; more than three decimals are rounded. */
export function cpusText(value: unknown): string | undefined {
  const text = String(value);
  if (!/^\d+(?:\.\d+)?$|^\.\d+$/.test(text)) return undefined;
  const rounded = String(Number(Number(text).toFixed(3)));
  return rounded.includes('.') ? rounded : `${rounded}.0`;
}

/** `512mb` → `512m` */
export function memoryText(value: unknown): string | undefined {
  const [, number, unit = ''] = /^(\d+)([bkmg]?)b?$/i.exec(String(value)) ?? [];
  return number === undefined ? undefined : `${number}${unit.toLowerCase()}`;
}

const secondsOfUnit: Readonly<Record<string, number>> = { us: 1e-6, ms: 1e-3, s: 1, m: 60, h: 3600 };

/** `1m30s` → 90; parts of a second are rounded up. */
export function secondsOf(value: unknown): number | undefined {
  const text = String(value);
  if (!/^(?:\d+(?:us|ms|s|m|h))+$/.test(text)) return undefined;
  const parts = [...text.matchAll(/(\d+)(us|ms|s|m|h)/g)];
  return Math.ceil(parts.reduce((sum, [, number, unit = 's']) => sum + Number(number) * (secondsOfUnit[unit] ?? 1), 0));
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
  readonly published: string | undefined;
}

/** `"127.0.0.1:8080-8081:80-81/udp"`, `80`, or `{target: 80, published: 8080, protocol: tcp}`. */
export function portsOf(value: unknown): ReadPorts | undefined {
  const map = mapOf(value);
  const text = map === undefined ? String(value) : `${String(map['target'])}/${String(map['protocol'] ?? 'tcp')}`;
  const [, host, from = '', to = from, protocol = 'tcp'] =
    /^(?:(.*):)?(\d{1,5})(?:-(\d{1,5}))?(?:\/(tcp|udp))?$/.exec(text) ?? [];
  const count = Number(to) - Number(from) + 1;
  if (from === '' || count < 1 || count > limits.ports) return undefined;
  const numbers = Array.from({ length: count }, (_, at) => Number(from) + at);
  const asked = map === undefined ? host : map['published'];
  return {
    ports: numbers.map((number) => (protocol === 'tcp' ? number : `${number}/${protocol}`)),
    published: asked === undefined ? undefined : String(asked).split(':').at(-1),
  };
}
