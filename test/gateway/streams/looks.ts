/** Streams that always have a place, and whose looks at their source a test makes itself. */
import type { FollowOptions, Showing } from '../../../gateway/streams/host.ts';
import { Doorbell } from '../../../lib/time/doorbell.ts';
import type { Services } from '../calls.ts';

export function streamsByHand() {
  const followed: FollowOptions[] = [];
  const streams: Services['streams'] = {
    polls: { streamMs: 1, waitMs: 1 },
    waitsOver: () => false,
    withPermit: (_guest, work) => work(),
    withDoorbell: (_subject, _exchange, work) => work(new Doorbell()),
    follow: (options) => {
      followed.push(options);
      return Promise.resolve();
    },
  };
  const show = async (): Promise<Showing> => {
    const [options] = followed;
    if (options === undefined) throw new Error('nothing is followed');
    return options.show();
  };
  return { streams, followed, show };
}
