/**
 * Splits a command that is one text as Compose does (mattn/go-shellwords, without variables and
 * backticks): by the quotes of a shell. Pure.
 */
export interface Words {
  readonly words: readonly string[];
  /**
   * Text from the first shell operator on, where Compose stops reading; absent if there is none.
   */
  readonly rest?: string;
}

const isBlank = (char: string): boolean => ' \t\r\n'.includes(char);
const escapes: Readonly<Record<string, string>> = { t: '\t', n: '\n' };

/** An open quote; `(` is `$(`, whose text stays unchanged. */
type Quote = '"' | "'" | '`' | '(';

/** `undefined` if Compose refuses the text, for example because a quote is not closed. */
export function wordsIn(text: string): Words | undefined {
  const words: string[] = [];
  let word: string | undefined;
  const open = new Set<Quote>();
  const chars = [...text];
  for (let at = 0; at < chars.length; at++) {
    const char = chars[at] ?? '';
    if (char === '\\' && !open.has("'")) {
      const next = chars[++at];
      if (next === undefined) return undefined;
      word = `${word ?? ''}${escapes[next] ?? next}`;
    } else if (isBlank(char) && open.size === 0) {
      if (word !== undefined) words.push(word);
      word = undefined;
    } else if (char === '"' && !open.has("'") && !open.has('(')) {
      toggle(open, '"');
      word ??= '';
    } else if (char === "'" && !open.has('"') && !open.has('(')) {
      toggle(open, "'");
      word ??= '';
    } else if (';&|<>'.includes(char) && open.size === 0) {
      // A number before `>` is a file descriptor: `2>`.
      if (word !== undefined && !(char === '>' && /^\d/.test(word))) words.push(word);
      return { words, rest: chars.slice(at).join('') };
    } else {
      if (char === '`' && !open.has("'") && !open.has('"') && !open.has('(')) toggle(open, '`');
      if ('()'.includes(char) && !open.has("'") && !open.has('"') && !open.has('`')) {
        const isOpening = char === '(' && !open.has('(') && word?.endsWith('$') === true;
        if (!isOpening && !(char === ')' && open.has('('))) return undefined;
        toggle(open, '(');
      }
      word = `${word ?? ''}${char}`;
    }
  }
  if (open.size > 0) return undefined;
  return { words: word === undefined ? words : [...words, word] };
}

function toggle(open: Set<Quote>, quote: Quote): void {
  if (!open.delete(quote)) open.add(quote);
}
