/** Stats from hosts to gateways, over NATS with the credentials of both. */
import t from 'tap';
import { StatsWatches, type WatchShare } from '../../../gateway/stats/watches.ts';
import { statsKind } from '../../../host-agent/sessions/stats.ts';
import type { LiveStats, StatsWatcher } from '../../../host-agent/usage/live-stats.ts';
import { systemClock } from '../../../lib/time/clock.ts';
import type { ContainerStats } from '../../../schemas/api/usage/stats.ts';
import { limits } from '../../../schemas/limits.ts';
import { containerId, tenantId } from '../../actors/support.ts';
import { until } from '../../support/until.ts';
import { gatewayOn, hostOn, placeOf, serveSessions, startServer } from './support.ts';
import { tunnelWindowControls } from '../../../lib/tunnel/tunnel.ts';
import { sessionFetches } from '../../../host-agent/sessions/sessions.ts';

const sample = (cpu_millis: number): ContainerStats => ({
  cpu_millis,
  mem_bytes: 1,
  mem_limit: 2,
  net_rx_bytes: 3,
  net_tx_bytes: 4,
  pids: 5,
  at: '2026-11-24T12:00:00.000Z',
});

t.test('stats', async (t) => {
  const nats = await startServer(t);
  const host = await hostOn(t, nats, 'h1');
  const watchers = new Set<StatsWatcher>();
  const live: Pick<LiveStats, 'watch'> = {
    watch: (_dockerId, watcher) => {
      watchers.add(watcher);
      return () => watchers.delete(watcher);
    },
  };
  const agent = serveSessions(host, [statsKind(live)]);
  await host.nc.flush();
  const gateways = await Promise.all([gatewayOn(t, nats), gatewayOn(t, nats)]);
  const [ours, theirs] = gateways.map(({ sessions }) => new StatsWatches(sessions, systemClock));
  if (ours === undefined || theirs === undefined) throw new Error('no gateways');
  const web = { tenant: tenantId('acme'), id: containerId() };
  const cpuOf = (share: WatchShare): number | undefined => share.newest()?.stats.cpu_millis;

  await t.test('a container has one session at each gateway, however many watch', async (t) => {
    const shares = [ours, ours, ours, theirs].map((watches) => watches.watch(web, placeOf(host)));
    await until('both gateways watch', () => watchers.size === 2);
    t.equal(agent.count(), 2);
    for (const watcher of watchers) watcher.onStats(sample(42));
    await until('all have it', () => shares.every((share) => cpuOf(share) === 42));
    // More than a gateway may have without dealing with them: none of them is lost for good.
    for (let cpu = 0; cpu <= 3 * tunnelWindowControls; cpu++) {
      for (const watcher of watchers) watcher.onStats(sample(cpu));
    }
    await until('all have the newest', () => shares.every((share) => cpuOf(share) === 3 * tunnelWindowControls));
    for (const share of shares.slice(0, 2)) share.leave();
    t.equal(ours.size, 1);
    shares[2]?.leave();
    await until('one is left', () => watchers.size === 1);
    shares[3]?.leave();
    await until('none is left', () => watchers.size === 0 && agent.count() === 0);
    t.equal(ours.size + theirs.size, 0);
  });

  await t.test('a container that ends, and a connection that breaks, say so to all', async (t) => {
    const shares = [ours, ours].map((watches) => watches.watch(web, placeOf(host)));
    await until('the host is asked', () => watchers.size === 1);
    for (const watcher of watchers) watcher.onEnd();
    await until('both have heard', () => shares.every((share) => share.ended()?.reason === 'not_running'));
    t.equal(ours.size, 0);
    const again = ours.watch(web, placeOf(host));
    await until('the host is asked', () => watchers.size === 1);
    await host.nc.reconnect();
    await until('it has heard', () => again.ended()?.reason === 'lost');
    await until('the host has heard', () => watchers.size === 0);
    for (const share of [...shares, again]) share.leave();
    await until('it is back', () => agent.count() === 0 && !host.nc.isClosed());
  });

  await t.test('a client that leaves before the host has answered leaves nothing', async (t) => {
    const share = ours.watch(web, placeOf(host));
    share.leave();
    t.match(share.ended(), { reason: 'left' });
    const other = ours.watch(web, placeOf(host));
    await until('the other is taken up', () => watchers.size === 1);
    other.leave();
    await until('none is left', () => watchers.size === 0 && agent.count() === 0);
    t.equal(gateways[0]?.sessions.count, 0);
  });

  await t.test('watchers take no places of people who want a shell', async (t) => {
    const containers = Array.from({ length: limits.sessionsPerHost + 1 }, () => ({ ...web, id: containerId() }));
    const shares: WatchShare[] = [];
    for (const [index, container] of containers.entries()) {
      shares.push(ours.watch(container, placeOf(host)));
      // An agent asks about a few rings at a time.
      if (index % sessionFetches === 0) await until('it is taken up', () => watchers.size === shares.length);
    }
    await until('all are taken up', () => watchers.size === containers.length);
    for (const share of shares) share.leave();
    await until('none is left', () => watchers.size === 0 && agent.count() === 0);
    t.notOk(agent.reasons.includes('too_many'));
  });
});
