/** Signing people in with an identity provider (ADR 43). */
import { KiB, hours, minutes } from '../units.ts';

export const signIn = {
  /** To choose one of several tenants. */
  signInChoiceMs: 10 * minutes,
  signInHandleBytes: 8 * KiB,
  /** Tenants that one person may choose from. */
  signInTenants: 64,
  sessionLifeMs: 12 * hours,
  /** A one-time link, for development. */
  signInLinkMs: 60 * minutes,
} as const;
