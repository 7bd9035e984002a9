import type { NetworkRecord } from '../../schemas/network.ts';

export function pac(_network: NetworkRecord): string {
  throw new Error('to come');
}
