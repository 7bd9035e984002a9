import type { NetworkRecord } from '../../schemas/network.ts';
import type { Subject } from './subject.ts';

export interface ClientKeys {
  readonly privateKey: string;
  readonly presharedKey: string;
}

export interface WireguardPeer {
  readonly publicKey: string;
  readonly presharedKey: string;
  readonly ipv4: string;
  readonly ipv6: string | null;
}

export function clientConf(_subject: Subject, _keys: ClientKeys): string {
  throw new Error('to come');
}
export function serverConf(_network: NetworkRecord, _privateKey: string, _peers: readonly WireguardPeer[]): string {
  throw new Error('to come');
}
