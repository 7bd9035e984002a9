/**
 * Whether a message comes from the agent that is enrolled for its host now (invariant A7, ADR 22).
 * Pure.
 */
import type { HostRecord } from '../../../schemas/api/host.ts';
import type { Sender } from '../../../schemas/wire/subjects.ts';

export const isEnrolled = (host: Pick<HostRecord, 'publicKey'> | undefined, { user }: Pick<Sender, 'user'>): boolean =>
  host?.publicKey === user;
