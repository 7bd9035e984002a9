import type { NetworkRecord } from '../../schemas/network.ts';
import type { Subject } from './subject.ts';

export interface SwanctlPeer {
  readonly localId: string;
  readonly ipv4: string;
  readonly ipv6: string | null;
}
export function clientSwanctl(_subject: Subject): string {
  throw new Error('to come');
}
export function serverSwanctl(_network: NetworkRecord, _peers: readonly SwanctlPeer[]): string {
  throw new Error('to come');
}
