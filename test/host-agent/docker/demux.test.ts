import fc from 'fast-check';
import t from 'tap';
import { Demultiplexer, type Frame } from '../../../host-agent/docker/demux.ts';
import { anyStream, cut, fractions, frameBytes, seed } from '../support/log-lines.ts';

t.test('frames survive any cut of their bytes', (t) => {
  const anyFrame = fc.record({ stream: anyStream, payload: fc.uint8Array({ maxLength: 300 }) });
  fc.assert(
    fc.property(fc.array(anyFrame, { maxLength: 20 }), fractions, (frames, at) => {
      const demultiplexer = new Demultiplexer(1000);
      const out: Frame[] = [];
      for (const chunk of cut(Buffer.concat(frames.map(frameBytes)), at)) out.push(...demultiplexer.push(chunk));
      t.same(
        out.map(({ stream, payload }) => [stream, payload.toString('hex')]),
        frames.map(({ stream, payload }) => [stream, Buffer.from(payload).toString('hex')]),
      );
      t.equal(demultiplexer.pendingBytes, 0);
    }),
    { numRuns: 200, seed },
  );
  t.end();
});

t.test('bytes that are not frames are an error, never a hang or a large buffer', (t) => {
  fc.assert(
    fc.property(fc.uint8Array({ minLength: 8, maxLength: 200 }), (bytes) => {
      const demultiplexer = new Demultiplexer(1000);
      try {
        demultiplexer.push(bytes);
      } catch (error) {
        return error instanceof Error;
      }
      return demultiplexer.pendingBytes <= 1008;
    }),
    { numRuns: 2000, seed },
  );
  t.throws(() => new Demultiplexer(1000).push(frameBytes({ stream: 'stdout', payload: Buffer.alloc(1001) })));
  t.end();
});
