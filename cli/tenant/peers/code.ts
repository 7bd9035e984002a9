/** A QR code as lines of a terminal. Pure. */
import qrcode from 'qrcode';
import type { Text } from '../../terminal/output.ts';

/** Light modules around the code (ISO/IEC 18004). */
const quietZone = 4;
/** Characters for two modules, the upper and the lower one, of which a line shows both. */
const blocks = { light: { light: ' ', dark: '▄' }, dark: { light: '▀', dark: '█' } } as const;

/**
 * One line for each two rows of modules. A screen has no dirt, so the lowest level of error
 * correction suffices, which gives the smallest code.
 */
export function codeLines(text: string): string[] {
  const { modules } = qrcode.create([{ data: Buffer.from(text), mode: 'byte' }], { errorCorrectionLevel: 'L' });
  const { size } = modules;
  const isInside = (at: number): boolean => at >= 0 && at < size;
  const shade = (row: number, column: number): 'light' | 'dark' =>
    isInside(row) && isInside(column) && modules.get(row, column) !== 0 ? 'dark' : 'light';
  const columns = Array.from({ length: size + 2 * quietZone }, (_, at) => at - quietZone);
  const lines: string[] = [];
  for (let row = -quietZone; row < size + quietZone; row += 2) {
    lines.push(columns.map((column) => blocks[shade(row, column)][shade(row + 1, column)]).join(''));
  }
  return lines;
}

/** Black on white, whatever the colours of the terminal: a phone may not read it otherwise. */
export const blackOnWhite = (line: string): Text => [{ sgr: '30;107' }, line, { sgr: '0' }];
