/**
 * The only way of a text to a terminal. Names, messages and log lines come from servers, files and
 * containers of others; a terminal would obey their control characters.
 */
import { textFor } from '../../lib/terminal.ts';

/** Colours only (SGR of ECMA-48): `32`, `30;107`. */
export interface Colours {
  readonly sgr: string;
}

/** Output: texts, and colours between them. A text itself can't contain a colour. */
export type Text = string | readonly (string | Colours)[];

const coloursOf = (sgr: string): string => (/^[\d;:]*$/.test(sgr) ? `\u001b[${sgr}m` : '');

/** Texts one after another; a single string if none has colours. */
export function joined(texts: readonly Text[], between = ''): Text {
  const pieces = texts.flatMap((text, at) => [...(at === 0 ? [] : [between]), ...piecesOf(text)]);
  return pieces.every((piece) => typeof piece === 'string') ? pieces.join('') : pieces;
}

const piecesOf = (text: Text): readonly (string | Colours)[] => (typeof text === 'string' ? [text] : text);

const escape = '\u001b';
const colourCodes = new RegExp(`${escape}\\[([\\d;:]*)m`);

/** A foreign text whose colours a terminal shows, as `less -R` does; they end with the text. */
export function withColours(text: string): Text {
  // The groups of `split` are its odd items.
  const pieces = text.split(colourCodes).map((piece, at) => (at % 2 === 0 ? piece : { sgr: piece }));
  return pieces.length === 1 ? text : [...pieces, { sgr: '0' }];
}

/** Standard output, or standard error. */
export class Output {
  /** For `exec`, whose program owns the terminal meanwhile. No other code may write here. */
  readonly raw: NodeJS.WriteStream;

  constructor(stream: NodeJS.WriteStream) {
    this.raw = stream;
  }

  get isTTY(): boolean {
    return this.raw.isTTY;
  }

  get columns(): number {
    return this.raw.columns;
  }

  /** Exact to a file or a pipe; at a terminal, control characters are escapes (`\u001b`). */
  write(text: Text): void {
    const pieces = piecesOf(text).map((piece) =>
      typeof piece === 'string' ? textFor(this.raw, piece) : coloursOf(piece.sgr),
    );
    this.raw.write(pieces.join(''));
  }

  /** A file, exact; at a terminal, its text as `write` shows it. */
  writeFile(bytes: Buffer): void {
    if (this.isTTY) this.write(bytes.toString('utf8'));
    else this.raw.write(bytes);
  }
}
