/** Logs as an engine sends them, and the blocks that the agent makes of them. */
import fc from 'fast-check';
import { BlockQueue, type Block } from '../../../host-agent/logs/block.ts';
import { LineReader, type Line } from '../../../host-agent/logs/lines.ts';
import { decoder } from '../../../lib/decode.ts';
import { LogBlock, type LogEntry } from '../../../schemas/api/log.ts';

const decodeBlock = decoder(LogBlock);
export const seed = Number(process.env['LONGSHORE_TEST_SEED'] ?? 20_260_102);

export const frameBytes = ({ stream, payload }: { stream: 'stdout' | 'stderr'; payload: Uint8Array }): Buffer => {
  const header = Buffer.alloc(8);
  header[0] = stream === 'stderr' ? 2 : 1;
  header.writeUInt32BE(payload.byteLength, 4);
  return Buffer.concat([header, payload]);
};

/** Cuts bytes at the given fractions. */
export const cut = (bytes: Buffer, at: readonly number[]): Buffer[] => {
  const places = [0, ...at.map((fraction) => Math.floor(fraction * bytes.length)).sort((a, b) => a - b), bytes.length];
  return places.slice(1).map((end, index) => bytes.subarray(places[index], end));
};

/** A time as the engine writes it, from microseconds since 1970. */
export const stamp = (micros: number): string => {
  const nanos = String(micros % 1_000_000).padStart(6, '0');
  return `${new Date(Math.floor(micros / 1_000_000) * 1000).toISOString().slice(0, 19)}.${nanos}000Z`;
};
export const base = Date.parse('2026-01-02T03:04:05Z') * 1000;

export const anyStream = fc.constantFrom('stdout' as const, 'stderr' as const);
export const fractions = fc.array(fc.double({ min: 0, max: 1, noNaN: true }), { maxLength: 20 });

/** The lines that the agent reads from these records. */
export const read = (...frames: [number, 'stdout' | 'stderr', string | Uint8Array][]): Line[] => {
  const reader = new LineReader();
  return frames.flatMap(([micros, stream, content]) =>
    reader.push(
      frameBytes({ stream, payload: Buffer.concat([Buffer.from(`${stamp(micros)} `), Buffer.from(content)]) }),
    ),
  );
};

export const linesOf = ({ payload }: Pick<Block, 'payload'>): LogEntry[] => decodeBlock(Buffer.from(payload)).lines;

export const lineOf = (text: string, micros = base): Line => {
  const bytes = Buffer.byteLength(text);
  return { ts: stamp(micros), stream: 'stdout', nth: 0, text, bytes };
};

export function blocksOf(lines: readonly Line[]): Block[] {
  const queue = new BlockQueue(0);
  queue.push(lines);
  const blocks: Block[] = [];
  for (let block = queue.take(); block !== undefined; block = queue.take()) blocks.push(block);
  if (queue.isFull) throw new Error('the queue is full after every block was taken');
  return blocks;
}
