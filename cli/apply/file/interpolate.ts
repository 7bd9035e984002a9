/**
 * Variables in a text, as Compose fills them in: `$NAME`, `${NAME}`, `${NAME:-default}`,
 * `${NAME:?message}`, `${NAME:+other}`, each also without the colon, and `$$` for a dollar sign.
 * With a colon, an empty variable counts as one that is not set. Pure.
 */

/** Levels of variables within variables. */
const depthMax = 16;

export interface Variables {
  /** `undefined` if the variable is not set. */
  valueOf(name: string): string | undefined;
  /**
   * Text for a variable that is not set and has no default.
   * @throws BadVariable
   */
  missing(name: string): string;
  /** A dollar sign that begins no variable stays, as in Compose. */
  readonly isLenient?: boolean;
}

/** A malformed or missing variable; the message says what to write. */
export class BadVariable extends Error {
  override readonly name = 'BadVariable';
}

const nameAt = /[A-Za-z_][A-Za-z0-9_]*/y;
const inBraces = /^([A-Za-z_][A-Za-z0-9_]*)(?:(:?)([-?+])([^]*))?$/;

/** @throws BadVariable */
export function interpolated(text: string, variables: Variables, depth = 0): string {
  if (depth > depthMax) throw new BadVariable(`variables are nested deeper than ${depthMax} levels`);
  let result = '';
  for (let at = 0; at < text.length;) {
    const dollar = text.indexOf('$', at);
    if (dollar < 0) return result + text.slice(at);
    result += text.slice(at, dollar);
    const next = text[dollar + 1];
    if (next === '$') {
      result += '$';
      at = dollar + 2;
    } else if (next === '{') {
      const end = closingOf(text, dollar + 2);
      result += expanded(text.slice(dollar + 2, end), variables, depth + 1);
      at = end + 1;
    } else {
      nameAt.lastIndex = dollar + 1;
      const name = nameAt.exec(text)?.[0];
      if (name === undefined && variables.isLenient !== true)
        throw new BadVariable('no name follows "$": write "$$" for a dollar sign');
      result += name === undefined ? '$' : (variables.valueOf(name) ?? variables.missing(name));
      at = name === undefined ? dollar + 1 : nameAt.lastIndex;
    }
  }
  return result;
}

/**
 * Index of the brace that closes the one opened before `from`. Pairs may nest; if they do not, the
 * last brace closes it, as in Compose.
 */
function closingOf(text: string, from: number): number {
  let open = 1;
  for (let at = from; at < text.length; at++) {
    if (text[at] === '{') open++;
    else if (text[at] === '}' && --open === 0) return at;
  }
  const last = text.lastIndexOf('}');
  if (last < from) throw new BadVariable('"${" is not closed: write "$$" for a dollar sign');
  return last;
}

function expanded(body: string, variables: Variables, depth: number): string {
  const [, name, colon, operator, word = ''] = inBraces.exec(body) ?? [];
  if (name === undefined) throw new BadVariable(`"\${${body}}" is no variable: write "$$" for a dollar sign`);
  const value = variables.valueOf(name);
  const isThere = value !== undefined && (colon !== ':' || value !== '');
  if (operator === undefined) return value ?? variables.missing(name);
  if (operator === '+') return isThere ? interpolated(word, variables, depth) : '';
  if (isThere) return value;
  if (operator === '-') return interpolated(word, variables, depth);
  throw new BadVariable(
    `the variable ${name} is not set: ${interpolated(word, variables, depth) || 'the file needs it'}`,
  );
}
