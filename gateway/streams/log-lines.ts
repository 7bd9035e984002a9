/** Lines out of the blocks of the stream LOGS, and their order. Pure. */
import { decoder } from '../../lib/decode.ts';
import { LogBlock, type LogEntry } from '../../schemas/api/log.ts';

/** A line as tenants get it. */
export interface LogLine {
  readonly seq: number;
  /** The `LogEntry` as JSON. */
  readonly json: string;
}

const decodeBlock = decoder(LogBlock);
const decodeLines = decoder(LogBlock.properties.lines);

const lineOf = (entry: LogEntry): LogLine => ({ seq: entry.seq, json: JSON.stringify(entry) });

/** All entries of a block. @throws DecodeError */
export const entriesOf = (block: Uint8Array): readonly LogEntry[] => decodeBlock(block).lines;

/** All lines of a block. @throws DecodeError */
export const linesOf = (block: Uint8Array): LogLine[] => entriesOf(block).map(lineOf);

/**
 * The last lines of a block, at least `count` of them if it has as many. Lines before these are not
 * decoded, as long as the block is written as agents write it. @throws DecodeError
 */
export function lastLinesOf(block: Uint8Array, count: number): LogLine[] {
  const text = tailOf(block, count);
  const entries = text === undefined ? undefined : decodeTail(text);
  return entries !== undefined && isRising(entries) ? entries.map(lineOf) : linesOf(block);
}

/** Separator of two lines. A text cannot contain it, because JSON escapes a quote in a text. */
const between = Buffer.from('},{"ts":"');
const end = Buffer.from(']}');
const bracket = '['.charCodeAt(0);

/** The last `count` lines as a JSON array; undefined if the block has fewer, or another form. */
function tailOf(block: Uint8Array, count: number): Uint8Array | undefined {
  const bytes = Buffer.from(block.buffer, block.byteOffset, block.byteLength);
  if (!bytes.subarray(-end.length).equals(end)) return undefined;
  let at = bytes.length;
  for (let found = 0; found < count; found++) {
    at = at === 0 ? -1 : bytes.lastIndexOf(between, at - 1);
    if (at === -1) return undefined;
  }
  // From the comma before the first line to the bracket after the last.
  const tail = Buffer.from(bytes.subarray(at + 1, -1));
  tail[0] = bracket;
  return tail;
}

/** Undefined if it is damaged: the whole block then shows how. */
function decodeTail(text: Uint8Array): readonly LogEntry[] | undefined {
  try {
    return decodeLines(text);
  } catch {
    return undefined;
  }
}

const isRising = (entries: readonly { readonly seq: number }[]): boolean =>
  entries.every(({ seq }, at) => at === 0 || seq > (entries[at - 1]?.seq ?? seq));

export const bySeq = (one: LogLine, other: LogLine): number => one.seq - other.seq;

/** The newest `limit` lines, oldest first, each number once. */
export function newestOf(lines: readonly LogLine[], limit: number): readonly LogLine[] {
  if (isRising(lines)) return lines.length <= limit ? lines : lines.slice(-limit);
  const sorted = lines.toSorted(bySeq);
  return sorted.filter((line, at) => line.seq !== sorted[at - 1]?.seq).slice(-limit);
}
