/** Signing people in with an identity provider (ADR 43). */
import { KiB, MiB, hours, minutes } from '../units.ts';

export const signIn = {
  /** From the way to the provider to the way back. */
  signInMs: 10 * minutes,
  deviceSignInMs: 30 * minutes,
  /** To choose one of several tenants. */
  signInChoiceMs: 10 * minutes,
  /** Browsers keep cookies of 4096 bytes, with name and attributes. */
  signInCookieBytes: 3800,
  signInHandleBytes: 8 * KiB,
  /** Tenants that one person may choose from. */
  signInTenants: 64,
  signInRules: 1000,
  signInRulesBytes: 1 * MiB,
  /** Values of one claim that rules look at. */
  signInClaimValues: 1000,
  signInReturnChars: 1024,
  sessionLifeMs: 12 * hours,
  /** A one-time link, for development. */
  signInLinkMs: 60 * minutes,
  signInLinkBytes: 4 * KiB,
} as const;
