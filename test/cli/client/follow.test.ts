import t, { type Test } from 'tap';
import type { ServerResponse } from 'node:http';
import { createApi } from '../../../cli/client/api.ts';
import { ApiError, InterruptedError } from '../../../cli/client/errors.ts';
import { clientStreamAttempts, follow } from '../../../cli/client/follow.ts';
import { collectGarbage } from '../../support/garbage.ts';
import { farEnd, type Reaction } from './server.ts';

const id = '019ab0c2-0000-7000-8000-000000000000';

const frame = (seq: number): string => `id: ${seq}\nevent: log\ndata: {"seq":${seq}}\n\n`;
const end = (reason: string): string => `event: end\ndata: {"reason":"${reason}"}\n\n`;

const begin = (response: ServerResponse, text: string): void => {
  response.writeHead(200, { 'content-type': 'text/event-stream' });
  response.write(text);
};
/** Sends the text, and then breaks the connection. */
const broken =
  (text: string): Reaction =>
  (response) => {
    begin(response, text);
    setTimeout(() => response.destroy(), 20);
  };
const ended =
  (text: string): Reaction =>
  (response) => {
    begin(response, text);
    response.end();
  };

async function following(t: Test, ...script: readonly [Reaction, ...Reaction[]]) {
  const { url, asked } = await farEnd(t, ...script);
  const api = createApi({ server: url, token: 'secret', pause: () => Promise.resolve() });
  const abort = new AbortController();
  let resets = 0;
  const lines = follow<{ readonly seq: number }>(
    (header, signal) =>
      api.GET('/api/v2/compute/{id}/logs/stream', {
        params: { path: { id }, query: { limit: 5 }, header },
        parseAs: 'stream',
        signal,
      }),
    abort.signal,
    { pause: () => Promise.resolve(), onReset: () => (resets += 1) },
  );
  return { asked, lines, resets: () => resets, leave: () => abort.abort() };
}

async function seqs(lines: AsyncIterable<{ readonly seq: number }>): Promise<number[]> {
  const found: number[] = [];
  for await (const { seq } of lines) found.push(seq);
  return found;
}

t.test('a stream that breaks is opened again after the last item', async (t) => {
  const { asked, lines } = await following(
    t,
    broken(frame(1) + frame(2) + 'id: 3\nevent: log\ndata: {"se'),
    { status: 503, body: { error: 'unavailable' }, headers: { 'retry-after': '1' } },
    ended(frame(3) + end('stopping')),
    ended(frame(4) + end('done')),
  );
  t.same(await seqs(lines), [1, 2, 3, 4]);
  t.same(
    asked.map(({ headers }) => headers['last-event-id']),
    [undefined, '2', '2', '3'],
  );
  t.ok(asked.every(({ path }) => path.endsWith('/logs/stream?limit=5')));
});

t.test('a stream that begins again says so, and is no item', async (t) => {
  const reset = 'event: reset\ndata: {"reason":"expired","oldest":"8"}\n\n';
  const { asked, lines, resets } = await following(
    t,
    ended(frame(1) + end('stopping')),
    ended(reset + frame(8) + end('done')),
  );
  t.same(await seqs(lines), [1, 8]);
  t.equal(resets(), 1);
  t.equal(asked[1]?.headers['last-event-id'], '1');
});

t.test('a token that ends, ends the stream with an error', async (t) => {
  const { lines } = await following(t, ended(frame(1) + end('unauthenticated')));
  await t.rejects(seqs(lines), { status: 401, code: 'unauthenticated' });
});

t.test('a refusal is final', async (t) => {
  const { asked, lines } = await following(t, { status: 404, body: { error: 'not_found' } });
  await t.rejects(seqs(lines), ApiError);
  t.equal(asked.length, 1);
});

t.test('the reader leaves: the connection closes', { timeout: 30_000 }, async (t) => {
  let closed: (() => void) | undefined;
  const isClosed = new Promise<void>((resolve) => (closed = resolve));
  const { lines, leave } = await following(t, (response) => {
    response.on('close', () => closed?.());
    begin(response, frame(1));
  });
  t.match(await lines.next(), { value: { seq: 1 } });
  const next = lines.next();
  // A stream lasts for hours, so the garbage of its beginning is collected.
  await collectGarbage();
  leave();
  await t.rejects(next, InterruptedError);
  await isClosed;
});

t.test('a stream that brings nothing, time after time, is given up', async (t) => {
  const { asked, lines } = await following(t, ended(end('stopping')));
  await t.rejects(seqs(lines), /ends the stream again and again/);
  t.equal(asked.length, clientStreamAttempts);
});
