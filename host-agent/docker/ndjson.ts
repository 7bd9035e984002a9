/** Lines of a stream of bytes, as the engine sends progress and events: one JSON object each. */

/** Joins chunks and cuts them at newlines; a line longer than `maxBytes` is an error. */
export async function* lines(chunks: AsyncIterable<Uint8Array>, maxBytes: number): AsyncGenerator<Buffer> {
  let rest = Buffer.alloc(0);
  for await (const chunk of chunks) {
    let from = 0;
    const joined = rest.length === 0 ? Buffer.from(chunk) : Buffer.concat([rest, chunk]);
    for (let end = joined.indexOf(10); end >= 0; end = joined.indexOf(10, from)) {
      const line = joined.subarray(from, end);
      from = end + 1;
      if (line.some((byte) => byte > 32)) yield line;
    }
    rest = joined.subarray(from);
    if (rest.length > maxBytes) throw new Error(`a line of more than ${maxBytes} bytes`);
  }
  if (rest.some((byte) => byte > 32)) yield rest;
}
