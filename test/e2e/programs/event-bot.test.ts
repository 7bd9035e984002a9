/**
 * A chat bot posts each event once, over restarts of its own: it stores the id of the event that it
 * posted last, and knows when it has missed some.
 */
import t from 'tap';
import { doneOf, type Api, type Schemas } from '../../../cli/client/api.ts';
import { followFrames, valueOf, type Open } from '../../../cli/client/follow.ts';
import { create, groundOf, settled, small } from './program.ts';

t.setTimeout(300_000);

type Event = Schemas['Event'];

interface Posted {
  readonly events: readonly Event[];
  /** Present if the stream could not continue behind its last id. */
  readonly missed?: string;
}

/** Posts until `isEnough`, from behind the event that it posted last. */
async function post(api: Api, after: string | undefined, isEnough: (event: Event) => boolean): Promise<Posted> {
  const events: Event[] = [];
  const leave = new AbortController();
  let missed: string | undefined;
  const open: Open = (header, signal) =>
    api.GET('/api/v2/compute/events/stream', { params: { header }, parseAs: 'stream', signal });
  try {
    for await (const frame of followFrames(open, leave.signal, { after })) {
      if (frame.event === 'reset') missed = (valueOf(frame) as { readonly reason: string }).reason;
      if (frame.event !== 'event') continue;
      const event = valueOf(frame) as Event;
      events.push(event);
      if (isEnough(event)) break;
    }
  } finally {
    leave.abort();
  }
  return missed === undefined ? { events } : { events, missed };
}

t.test('a bot that starts again posts what came meanwhile, each once', async (t) => {
  const { api, image } = await groundOf(t, 'bot');
  const { data, generation } = await create(api, { name: 'web', image, ...small });
  await settled(api, data.id, generation);
  const params = { path: { id: data.id } };
  const first = await post(api, undefined, ({ status }) => status === 'running');
  t.equal(first.missed, undefined);
  const last = first.events.at(-1)!.id;

  await doneOf(api.POST('/api/v2/compute/{id}/stop', { params }));
  await settled(api, data.id, undefined);
  await doneOf(api.DELETE('/api/v2/compute/{id}', { params }));
  const second = await post(api, last, ({ type }) => type === 'removed');
  t.equal(second.missed, undefined);
  t.same([second.events[0]?.type, second.events.at(-1)?.type], ['stop_requested', 'removed'], 'nothing is left out');
  const ids = [...first.events, ...second.events].map(({ id }) => id);
  t.equal(new Set(ids).size, ids.length, 'and nothing comes twice');

  const lost = await post(api, 'not-an-id', ({ type }) => type === 'removed');
  t.equal(lost.missed, 'unknown', 'a bot with a damaged state knows that it does not know');
  t.same(
    lost.events.map(({ id }) => id),
    ids,
    'and gets all that is kept',
  );
});
