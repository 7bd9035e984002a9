/** The calls of the Docker Engine API that the agent makes; calls/ decodes each answer. */
import { limits } from '../../schemas/limits.ts';
import { decode, shapes, type Info } from './answers.ts';
import { createEngineClient, parse } from './calls/client.ts';
import { containerCalls, type ContainerCalls } from './calls/containers.ts';
import { execCalls, type ExecCalls } from './calls/exec.ts';
import { imageCalls, type ImageCalls } from './calls/images.ts';
import { networkCalls, type NetworkCalls } from './calls/networks.ts';
import { volumeCalls, type VolumeCalls } from './calls/volumes.ts';
import type { Transport } from './transport.ts';

/** A pull ends after this time without progress. */
const enginePullIdleMs = 60_000;

export interface Engine extends ContainerCalls, ExecCalls, ImageCalls, NetworkCalls, VolumeCalls {
  /**
   * The engine's version. Negotiates the API version too, each time, since the engine may have been
   * replaced.
   */
  probe(deadlineMs: number): Promise<{ readonly version: string }>;
  info(): Promise<Info>;
  /**
   * Sizes of all volumes, by name. Engines measure them all at once; older ones measure everything
   * else too.
   */
  volumeBytes(): Promise<ReadonlyMap<string, number>>;
  close(): void;
}

/** @param pullIdleMs a pull that makes no progress for this long has stalled */
export function createEngine(transport: Transport, pullIdleMs: number = enginePullIdleMs): Engine {
  const client = createEngineClient(transport);
  return {
    ...containerCalls(client),
    ...execCalls(client),
    ...imageCalls(client, pullIdleMs),
    ...networkCalls(client),
    ...volumeCalls(client),
    probe: async (deadlineMs) => ({ version: await client.negotiate(deadlineMs) }),
    info: async () =>
      parse('info', decode.info, await client.ask({ name: 'info', method: 'GET', path: '/info' }, [200])),
    volumeBytes: async () => {
      const bounds = { keep: shapes.diskUsage, deadlineMs: limits.diskMeasureMs };
      const call = { name: 'disk usage', method: 'GET', path: '/system/df?type=volume', ...bounds } as const;
      const { Volumes } = parse(call.name, decode.diskUsage, await client.ask(call, [200]));
      return new Map((Volumes ?? []).map(({ Name, UsageData }) => [Name, Math.max(0, UsageData?.Size ?? 0)]));
    },
    close: () => transport.close(),
  };
}
