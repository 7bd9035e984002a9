/**
 * A log shipper copies each line of a container once, over updates of the container and restarts of
 * its own.
 */
import t from 'tap';
import { writtenOf, type Api, type Schemas } from '../../../cli/client/api.ts';
import { followFrames, valueOf, type Open } from '../../../cli/client/follow.ts';
import { create, groundOf, settled, small } from './program.ts';

t.setTimeout(300_000);

type Entry = Schemas['LogEntry'];

/** Ships lines until `isEnough`, from behind the line that it shipped last. */
async function ship(api: Api, id: string, after: string | undefined, isEnough: (entry: Entry) => boolean) {
  const entries: Entry[] = [];
  const leave = new AbortController();
  const open: Open = (header, signal) =>
    api.GET('/api/v2/compute/{id}/logs/stream', { params: { path: { id }, header }, parseAs: 'stream', signal });
  try {
    for await (const frame of followFrames(open, leave.signal, { after })) {
      if (frame.event !== 'log') throw new Error(`lines were missed: ${frame.data}`);
      const entry = valueOf(frame) as Entry;
      entries.push(entry);
      if (isEnough(entry)) break;
    }
  } finally {
    leave.abort();
  }
  return entries;
}

t.test('each line is shipped once, in order, over an update and a restart', async (t) => {
  const { api, imageOf } = await groundOf(t, 'shipper');
  const image = await imageOf('n=0; while :; do n=$((n+1)); echo "$RUN $n"; sleep 0.2; done');
  const { data, generation } = await create(api, { name: 'web', image, env: { RUN: 'a' }, ...small });
  await settled(api, data.id, generation);
  const first = await ship(api, data.id, undefined, ({ line }) => line === 'a 5');
  const body = { env: { RUN: 'b' } };
  const params = { path: { id: data.id } };
  await writtenOf(api.PATCH('/api/v2/containers/{id}/spec', { params, body }));
  const rest = await ship(api, data.id, String(first.at(-1)!.seq), ({ line }) => line === 'b 5');
  const lines = [...first, ...rest].map(({ line }) => line);
  const runA = lines.filter((line) => line.startsWith('a'));
  t.same(
    lines,
    [...runA.map((_, at) => `a ${at + 1}`), ...Array.from({ length: 5 }, (_, at) => `b ${at + 1}`)],
    'both runs from their first line on, without a gap',
  );
});
