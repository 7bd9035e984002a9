/** The newest blocks of a log, within a bound; a mark replaces the earlier ones. */
import { blockOfOne, type Block } from './block.ts';
import { lostLines } from './loss.ts';

export interface Tail {
  push(block: Block): void;
  kept(): { readonly blocks: readonly string[]; readonly lines: number; readonly dropped: number };
}

export function createTail(maxBytes: number): Tail {
  const blocks: Block[] = [];
  let bytes = 0;
  let lines = 0;
  let dropped = 0;
  let lastDropped: Block | undefined;

  return {
    push: (block) => {
      blocks.push(block);
      bytes += block.payload.length;
      lines += block.lines;
      while (bytes > maxBytes && blocks.length > 1) {
        lastDropped = blocks.shift();
        bytes -= lastDropped?.payload.length ?? 0;
        lines -= lastDropped?.lines ?? 0;
        dropped += lastDropped?.lines ?? 0;
      }
    },
    kept: () => {
      const payloads = blocks.map(({ payload }) => payload);
      if (lastDropped === undefined) return { blocks: payloads, lines, dropped };
      const { place, seq } = lastDropped;
      const line = lostLines(dropped, 'the container was removed before they could be sent');
      return { blocks: [blockOfOne({ ts: place.ts, stream: 'stderr', line, seq }), ...payloads], lines, dropped };
    },
  };
}
