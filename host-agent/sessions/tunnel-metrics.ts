import type { SessionEnd } from '../../schemas/wire/session.ts';

/** What is counted of the sessions of a host. */
export interface TunnelMetrics {
  tunnelOpened(kind: string): void;
  tunnelEnded(kind: string, reason: SessionEnd['reason']): void;
}
