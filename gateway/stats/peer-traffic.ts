/** `GET /peers/:peer/traffic`: what a VPN peer sent and got, as its servers counted it. */
import { timestamp } from '../../lib/time/timestamp.ts';
import type { PeerTraffic } from '../../schemas/api/peer.ts';
import { hourMs } from '../../schemas/records/usage.ts';
import { succeeded, tenantOf, type HandlerOf } from '../call.ts';
import { invalid, ok } from '../http/respond.ts';
import { readNow } from '../streams/requests.ts';
import type { UsageReader } from './usage-reader.ts';
import { hoursOf, type UsageRoutesOptions } from './usage.ts';

export interface PeerTrafficOptions extends Pick<UsageRoutesOptions, 'ask' | 'clock' | 'log'> {
  readonly usage: Pick<UsageReader, 'traffic'>;
}

export function peerTraffic({ ask, usage, clock, log }: PeerTrafficOptions): HandlerOf<'peer.traffic'> {
  return async (call) => {
    const hours = hoursOf(call.query, clock.nowMs());
    if (!hours.ok) return invalid(hours.faults);
    const [tenant, { peer }] = [tenantOf(call), call.params];
    const found = await ask('read', { type: 'peer.get', tenant, peer, ...call.origin }, call.deadlineMs);
    if (!succeeded(found)) return found;
    return readNow({ log }, call, async () => {
      const byHour = await usage.traffic(tenant, peer, hours.value);
      const rows = [...byHour].sort(([one], [other]) => one - other);
      return ok(
        rows.map(([hour, { rxBytes, txBytes }]): PeerTraffic => ({
          at: timestamp(hour * hourMs),
          rx_bytes: rxBytes,
          tx_bytes: txBytes,
        })),
      );
    });
  };
}
