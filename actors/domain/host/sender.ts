/**
 * Checks that a message comes from the agent that is enrolled for its host now (invariant A7, ADR
 * 22). Pure.
 */
import type { HostRecord } from '../../../schemas/api/host.ts';
import { days } from '../../../schemas/limits/units.ts';
import type { Sender } from '../../../schemas/wire/subjects.ts';

/**
 * An agent may name a session that is so far ahead of the clock of actors. Hellos give sessions by
 * the clock, and more than this only to hosts whose record says so.
 */
export const sessionAheadMs = 1 * days;

export const isEnrolled = (host: Pick<HostRecord, 'publicKey'> | undefined, { user }: Pick<Sender, 'user'>): boolean =>
  host?.publicKey === user;

/**
 * The highest session that an agent may name. `given`: the last that a hello gave, as far as this
 * process knows; another process may have given a later one since. An agent that names a higher one
 * lies, and containers would remember it beyond the agent's end.
 */
export const highestSession = (given: number, nowMs: number): number => Math.max(given, nowMs + sessionAheadMs);

/** The first session of another key: above all that an agent of the former key may name. */
export const firstSession = (given: number, nowMs: number): number => highestSession(given, nowMs) + 1;
