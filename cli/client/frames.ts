/** Server-Sent Events as text becomes frames. Pure (HTML standard, section 9.2.6). */
import { MiB } from '../../schemas/limits/units.ts';

/** One line of a stream, as of an event with the longest message, and more. */
const clientFrameChars = 1 * MiB;

export interface Frame {
  /** Empty if the frame has no id. */
  readonly id: string;
  readonly event: string;
  readonly data: string;
}

/** Takes text as it comes, in pieces of any length. */
export function frameReader(): (piece: string) => Frame[] {
  let rest = '';
  let fields = { id: '', event: '', data: '' };
  const take = (line: string): Frame[] => {
    if (line === '') {
      const frame = fields;
      fields = { id: '', event: '', data: '' };
      return frame.data === '' ? [] : [frame];
    }
    const [, name = '', value = ''] = /^([^:]*)(?:: ?(.*))?$/s.exec(line) ?? [];
    if (name === 'id' || name === 'event') fields = { ...fields, [name]: value };
    if (name === 'data') fields = { ...fields, data: fields.data === '' ? value : `${fields.data}\n${value}` };
    return [];
  };
  return (piece) => {
    const lines = (rest + piece).split('\n');
    rest = lines.pop() ?? '';
    if (rest.length > clientFrameChars) throw new Error('a line of the stream is too long');
    return lines.flatMap((line) => take(line.endsWith('\r') ? line.slice(0, -1) : line));
  };
}
