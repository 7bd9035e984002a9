/**
 * Whether a message comes from the agent that is enrolled for its host now (invariant A7, ADR 22).
 * Pure.
 */
import type { HostRecord } from '../../../schemas/api/host.ts';
import type { Sender } from '../../../schemas/wire/subjects.ts';

/**
 * An agent with credentials from before 0.1.0 is believed by the host's key alone, until an agent
 * with credentials that name its own key has been heard.
 */
export function isEnrolled(
  host: Pick<HostRecord, 'publicKey' | 'isBound'> | undefined,
  { user }: Pick<Sender, 'user'>,
): boolean {
  if (host === undefined || host.publicKey === null) return false;
  return user === undefined ? host.isBound !== true : host.publicKey === user;
}
