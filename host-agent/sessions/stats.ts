/** The use of a container, once a second, for gateways that asked for it (usage/live-stats.ts). */
import { Permits } from '../../lib/permits.ts';
import type { StatsMessage } from '../../schemas/wire/session.ts';
import type { LiveStats } from '../usage/live-stats.ts';
import type { SessionKind } from './sessions.ts';

/** Gateways that watch the stats of one container, and watches of one host. */
const statsPerContainer = 64;
const statsPerHost = 2048;

export const statsKind = (liveStats: Pick<LiveStats, 'watch'>): SessionKind => ({
  name: 'stats',
  // The bounds are separate: people who watch leave room for a shell.
  permits: new Permits({ inAll: statsPerHost, perClient: statsPerContainer }),
  logLevel: 'debug',
  isOf: ({ stats }) => stats !== undefined,
  open: ({ dockerId }, _about, tunnel) => {
    let unsent: StatsMessage | undefined;
    /** A gateway that has not handled the earlier ones gets the newest when it has. */
    const send = (): void => {
      if (unsent !== undefined && tunnel.control(unsent)) unsent = undefined;
    };
    const leave = liveStats.watch(dockerId, {
      onStats: (stats) => {
        unsent = { type: 'stats', stats };
        send();
      },
      onEnd: () => tunnel.end({ reason: 'not_running', message: 'the container does not run any more' }),
    });
    const refuse = (): void => tunnel.end({ reason: 'invalid', message: 'this session takes nothing' });
    return Promise.resolve({ onData: refuse, onControl: refuse, onRoom: send, onEnd: leave });
  },
});
