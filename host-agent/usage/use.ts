/** The use of a container, from the kernel's files or, if they cannot be read, from the engine. */
import { memoryIn, type Inspection, type Stats } from '../docker/answers.ts';
import type { Engine } from '../docker/engine.ts';
import { sandboxOf } from '../docker/observed.ts';
import type { Traffic } from '../../schemas/records/usage.ts';
import type { Cgroups } from './cgroups.ts';
import type { Counters } from './ledger.ts';

export interface Use extends Counters {
  /** Bytes; `null` if there is no limit, or it is unknown. */
  readonly memLimit: number | null;
  /** `null` if unknown, or not asked for. */
  readonly pids: number | null;
  readonly net: Traffic | null;
}

const running: ReadonlySet<string | undefined> = new Set(['running', 'paused', 'restarting']);
export const isRunning = (status: string | undefined): boolean => running.has(status);

const neverStarted = '0001-';

/** The start of a run; `undefined` if it never ran. */
export const startIn = ({ State: { StartedAt } }: Inspection): string | undefined =>
  StartedAt === '' || StartedAt.startsWith(neverStarted) ? undefined : StartedAt;

const memLimitIn = ({ HostConfig }: Inspection): number | null => HostConfig?.Memory || null;

/** @param isWhole `false` if CPU and memory are enough */
export function useFromFiles(cgroups: Cgroups | undefined, inspection: Inspection, isWhole: boolean): Use | undefined {
  const {
    Id,
    State: { Pid = 0 },
  } = inspection;
  const counters = Pid > 0 ? cgroups?.read(Id, Pid) : undefined;
  if (cgroups === undefined || counters === undefined) return undefined;
  const more = isWhole ? { pids: cgroups.pids(Id, Pid), net: cgroups.net(Pid) } : { pids: null, net: null };
  return { ...counters, memLimit: memLimitIn(inspection), ...more };
}

/** @returns `undefined` if it does not run @throws EngineError */
export async function useFromEngine(
  engine: Pick<Engine, 'stats'>,
  inspection: Inspection,
  deadlineMs: number,
  isWhole: boolean,
): Promise<Use | undefined> {
  const stats = await engine.stats(inspection.Id, deadlineMs);
  if (stats?.memory_stats.usage === undefined) return undefined;
  const { total_usage: cpuNs } = stats.cpu_stats.cpu_usage;
  return {
    cpuMs: Math.floor(cpuNs / 1e6),
    memBytes: memoryIn(stats),
    memLimit: memLimitIn(inspection),
    pids: stats.pids_stats?.current ?? null,
    net: isWhole ? trafficIn(await withNetworks(engine, inspection, stats, deadlineMs)) : null,
  };
}

/** The engine counts the traffic of a container in a sandbox for its sandbox. */
async function withNetworks(
  engine: Pick<Engine, 'stats'>,
  { HostConfig }: Inspection,
  stats: Stats,
  deadlineMs: number,
): Promise<Stats | undefined> {
  const sandbox = sandboxOf(HostConfig?.NetworkMode);
  return sandbox === undefined ? stats : engine.stats(sandbox, deadlineMs);
}

function trafficIn(stats: Stats | undefined): Traffic | null {
  if (stats?.networks === undefined) return null;
  let [rxBytes, txBytes] = [0, 0];
  for (const { rx_bytes, tx_bytes } of Object.values(stats.networks)) {
    rxBytes += rx_bytes;
    txBytes += tx_bytes;
  }
  return { rxBytes, txBytes };
}
