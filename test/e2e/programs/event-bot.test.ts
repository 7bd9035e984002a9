/**
 * A chat bot tells of each event once, over restarts of its own: it stores the id of the last event
 * that it told of, and knows when it has missed some.
 */
import t from 'tap';
import { doneOf, type Api, type Schemas } from '../../../cli/client/api.ts';
import { followFrames, valueOf, type Open } from '../../../cli/client/follow.ts';
import { create, groundOf, settled, small } from './program.ts';

t.setTimeout(300_000);

type Event = Schemas['Event'];

interface Told {
  readonly events: readonly Event[];
  /** It could not go on behind the id that it had. */
  readonly missed?: string;
}

/** Runs until `isEnough`, from behind the event that it told of last. */
async function tell(api: Api, after: string | undefined, isEnough: (event: Event) => boolean): Promise<Told> {
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

t.test('a bot that starts again tells of what came meanwhile, each once', async (t) => {
  const { api, image } = await groundOf(t, 'bot');
  const { data, generation } = await create(api, { name: 'web', image, ...small });
  await settled(api, data.id, generation);
  const params = { path: { id: data.id } };
  const first = await tell(api, undefined, ({ status }) => status === 'running');
  t.equal(first.missed, undefined);
  const last = first.events.at(-1)!.id;

  await doneOf(api.POST('/api/v2/compute/{id}/stop', { params }));
  await settled(api, data.id, undefined);
  await doneOf(api.DELETE('/api/v2/compute/{id}', { params }));
  const second = await tell(api, last, ({ type }) => type === 'removed');
  t.equal(second.missed, undefined);
  t.same([second.events[0]?.type, second.events.at(-1)?.type], ['stop_requested', 'removed'], 'nothing is left out');
  const ids = [...first.events, ...second.events].map(({ id }) => id);
  t.equal(new Set(ids).size, ids.length, 'and nothing comes twice');

  const lost = await tell(api, 'not-an-id', ({ type }) => type === 'removed');
  t.equal(lost.missed, 'unknown', 'a bot with a damaged state knows that it does not know');
  t.same(
    lost.events.map(({ id }) => id),
    ids,
    'and gets all that is kept',
  );
});
