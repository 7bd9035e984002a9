/** The range of IPv4 addresses that `npm start` gives to containers. */
import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { hostNetworks, overlapOf } from '../../host-agent/network/range-overlap.ts';
import { ipv4RangeIn } from '../../schemas/tenant-network.ts';

/** Ranges to choose from, the first of which is seldom used. */
const candidates = Array.from({ length: 255 }, (_, step) => `10.${((192 + step) % 255) + 1}.0.0/16`);

/**
 * A range that this machine does not use. It is kept beside the state, because a cluster keeps the
 * one that it was given first; `off` where the machine uses all of them.
 */
export function tenantRange(stateFolder: string): string {
  const file = join(stateFolder, 'tenant-ipv4');
  try {
    return readFileSync(file, 'utf8').trim();
  } catch {
    const networks = hostNetworks();
    const isFree = (text: string): boolean => {
      const range = ipv4RangeIn(text);
      return range !== undefined && overlapOf(range, networks) === undefined;
    };
    const chosen = candidates.find(isFree) ?? 'off';
    writeFileSync(file, `${chosen}\n`);
    return chosen;
  }
}
