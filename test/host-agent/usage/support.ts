/** The ledger of an agent in a folder of a test. */
import { createStateDisk } from '../../../host-agent/disk/state-disk.ts';
import { createFaults } from '../../../host-agent/faults.ts';
import { loadUsageStore, type UsageStore } from '../../../host-agent/usage/store.ts';
import { quietLog } from '../../actors/support.ts';

/** Readings of the machine's clocks. */
export interface Clocks {
  nowMs: number;
  steadyMs: number;
}

let sources = 0;

export async function storeIn(
  stateDir: string,
  clocks: Clocks,
  onDropped: (hours: number) => void = () => {},
): Promise<UsageStore> {
  const disk = createStateDisk(createFaults(quietLog), { minMs: 1, maxMs: 10 }, quietLog);
  const newSource = () => `${++sources}`.padStart(32, '0');
  const machineTime = { boot: 'b1', nowMs: () => clocks.steadyMs };
  return loadUsageStore({
    stateDir,
    nowMs: () => clocks.nowMs,
    machineTime,
    newSource,
    onDropped,
    disk,
    log: quietLog,
  });
}
