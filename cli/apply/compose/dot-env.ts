/**
 * Files of variables as Compose reads them (compose-go, dotenv): `.env`, and those of `env_file`.
 * No library follows these rules: a `#` begins a comment only behind a blank, `NAME: value` is a
 * line too, and other variables are filled in but within single quotes. Pure.
 */
import { limits } from '../../../schemas/limits.ts';
import { BadVariable, interpolated } from '../file/interpolate.ts';

type Lookup = (name: string) => string | undefined;

/** A malformed line, which the message names. */
export class BadLine extends Error {
  override readonly name = 'BadLine';
}

const keyAt = /[ \t]*(?:export[ \t]+)?([\p{L}\p{N}_.[\]-]+)[ \t]*(?:([=:])[ \t]*|(?=\r?\n|$))/uy;
const emptyAt = /\s*(?:#[^\n]*)?(?:\n|$)/y;
const restAt = /[ \t]*(?:#[^\n]*)?\r?(?:\n|$)/y;

/** The match at a position. */
function matchAt(pattern: RegExp, text: string, at: number): RegExpExecArray | null {
  pattern.lastIndex = at;
  return pattern.exec(text);
}

/**
 * The variables in their order. A variable without a value has that of `valueOf`, or is left out.
 * @param valueOf variables of the shell, which win over those of the file in references
 * @throws BadLine
 */
export function variablesIn(given: string, valueOf: Lookup): Record<string, string> {
  const text = given.replace(/^\uFEFF/, '');
  const found: Record<string, string> = {};
  const expanded = (value: string, at: number): string => {
    try {
      return interpolated(value, {
        valueOf: (name) => valueOf(name) ?? (Object.hasOwn(found, name) ? found[name] : undefined),
        missing: () => '',
        isLenient: true,
      });
    } catch (error) {
      if (!(error instanceof BadVariable)) throw error;
      throw new BadLine(`line ${lineOf(text, at)}: ${error.message}`);
    }
  };
  let chars = 0;
  for (let at = 0; at < text.length;) {
    const empty = matchAt(emptyAt, text, at);
    if (empty !== null && empty[0].length > 0) {
      at += empty[0].length;
      continue;
    }
    const [whole, name = '', sign] = matchAt(keyAt, text, at) ?? [];
    if (whole === undefined) throw new BadLine(`line ${lineOf(text, at)}: it must be NAME=value`);
    at += whole.length;
    const value = sign === undefined ? undefined : valueAt(text, at);
    const result = value === undefined ? valueOf(name) : value.isLiteral ? value.text : expanded(value.text, at);
    chars += result?.length ?? 0;
    // Each line may have those before it several times.
    if (chars > limits.cliInputBytes)
      throw new BadLine(`line ${lineOf(text, at)}: its variables are longer than ${limits.cliInputBytes} characters`);
    if (result !== undefined) found[name] = result;
    at = value?.end ?? at;
    const rest = matchAt(restAt, text, at);
    if (rest === null) throw new BadLine(`line ${lineOf(text, at)}: only a comment may follow the quotes`);
    at += rest[0].length;
  }
  return found;
}

interface RawValue {
  readonly text: string;
  /** References to variables stay as text. */
  readonly isLiteral: boolean;
  readonly end: number;
}

function valueAt(text: string, at: number): RawValue {
  const quote = text[at];
  if (quote !== '"' && quote !== "'") {
    const newline = text.indexOf('\n', at);
    const end = newline < 0 ? text.length : newline;
    // A comment needs a blank before it, and a value before that.
    const [plain = ''] = text.slice(at, end).split(' #');
    return { text: plain.trimEnd(), isLiteral: false, end };
  }
  let raw = '';
  for (let place = at + 1; place < text.length; place++) {
    if (text[place] === '\\' && place + 1 < text.length) {
      raw += text[place + 1] === quote ? quote : `\\${text[place + 1] ?? ''}`;
      place++;
    } else if (text[place] === quote) {
      return { text: quote === '"' ? unescaped(raw) : raw, isLiteral: quote === "'", end: place + 1 };
    } else raw += text[place] ?? '';
  }
  throw new BadLine(`line ${lineOf(text, at)}: its quotes are not closed`);
}

const escapes: Readonly<Record<string, string>> = { n: '\n', r: '\r', t: '\t', b: '\b', f: '\f', v: '\v', a: '\u0007' };

/** `\n` is a line break, `\0123` an `S`, `\$` a dollar sign that begins no variable. */
const unescaped = (text: string): string =>
  text.replace(/\\(?:([abfnrtv$"\\])|0([0-3][0-7]{2}))/g, (_, letter?: string, octal = '') => {
    if (letter === undefined) return String.fromCharCode(Number.parseInt(octal, 8));
    return letter === '$' ? '$$' : (escapes[letter] ?? letter);
  });

const lineOf = (text: string, at: number): number => text.slice(0, at).split('\n').length;

/**
 * The variables of a file whose values stay as they are written, as `docker run --env-file` reads
 * it. A variable without a value has that of `valueOf`, or is left out.
 * @throws BadLine
 */
export function rawVariablesIn(given: string, valueOf: Lookup): Record<string, string> {
  const lines = given.replace(/^\uFEFF/, '').split(/\r?\n/);
  return Object.fromEntries(
    lines.flatMap((text, at) => {
      const line = text.trimStart();
      if (line === '' || line.startsWith('#')) return [];
      const [, name, sign, value = ''] = /^([^\s=]+)(?:(=)(.*))?$/.exec(line) ?? [];
      if (name === undefined) throw new BadLine(`line ${at + 1}: it must be NAME=value`);
      const found = sign === undefined ? valueOf(name) : value;
      return found === undefined ? [] : [[name, found] as const];
    }),
  );
}
