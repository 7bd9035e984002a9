import type { NetworkName } from '../../schemas/ids.ts';
import type { NetworkSettings } from '../../schemas/network.ts';
import type { Validated } from '../create.ts';

export interface NetworkToMake {
  readonly name: NetworkName;
  readonly settings: NetworkSettings;
}

export function validateNetworkCreate(_body: unknown): Validated<NetworkToMake> {
  throw new Error('to come');
}
export function validateNetworkPut(_body: unknown): Validated<NetworkSettings> {
  throw new Error('to come');
}
