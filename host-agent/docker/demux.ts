/**
 * The raw log stream of a container without a terminal (Docker Engine API, "ContainerAttach",
 * stream format): frames of an eight-byte header {stream, 0, 0, 0, size as big-endian uint32} and a
 * payload, cut into chunks at any byte.
 */

export interface Frame {
  readonly stream: 'stdout' | 'stderr';
  readonly payload: Buffer;
}

const headerBytes = 8;
/**
 * An error of the engine inside the stream ("Systemerr" of its stdcopy), not a line of the
 * container.
 */
const systemError = 3;

/**
 * Takes chunks and returns the frames that they complete. Throws if the bytes are not such a
 * stream.
 */
export class Demultiplexer {
  readonly #maxFrameBytes: number;
  #rest: Buffer = Buffer.alloc(0);
  #failure: string | undefined;

  constructor(maxFrameBytes: number) {
    this.#maxFrameBytes = maxFrameBytes;
  }

  push(chunk: Uint8Array): Frame[] {
    const bytes = this.#rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([this.#rest, chunk]);
    const frames: Frame[] = [];
    let from = 0;
    while (bytes.length - from >= headerBytes) {
      const kind = bytes[from];
      const size = bytes.readUInt32BE(from + 4);
      if (kind === undefined || kind > systemError) throw new Error(`not a log frame: stream ${kind}`);
      if (size > this.#maxFrameBytes) throw new Error(`a log frame of ${size} bytes`);
      const end = from + headerBytes + size;
      if (bytes.length < end) break;
      const payload = bytes.subarray(from + headerBytes, end);
      from = end;
      if (kind === systemError) this.#failure ??= payload.toString('utf8').trim();
      else frames.push({ stream: kind === 2 ? 'stderr' : 'stdout', payload });
    }
    this.#rest = bytes.subarray(from);
    return frames;
  }

  /**
   * The engine's message about why it ended the stream early; the frames before it are complete.
   */
  get failure(): string | undefined {
    return this.#failure;
  }

  /**
   * Bytes of an incomplete frame; if not zero at the end of a stream, the stream was cut.
   */
  get pendingBytes(): number {
    return this.#rest.length;
  }
}
