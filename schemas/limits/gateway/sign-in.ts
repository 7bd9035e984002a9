/** Signing people in with an identity provider (ADR 43). */
import { KiB, MiB, hours, seconds, minutes, days } from '../units.ts';

export const signIn = {
  /** The time for each answer of the identity provider, and the size of it. */
  providerMs: 5 * seconds,
  providerBytes: 1 * MiB,
  /** A provider that answered in this time is there. */
  providerFreshMs: 10 * seconds,
  /** The time between two asks whether it is there. */
  providerRetryMs: 1 * seconds,
  /** From the way to the provider to the way back. */
  signInMs: 10 * minutes,
  deviceSignInMs: 30 * minutes,
  /** To choose one of several tenants. */
  signInChoiceMs: 10 * minutes,
  /** Browsers keep cookies of 4096 bytes, with name and attributes. */
  signInCookieBytes: 3800,
  signInHandleBytes: 8 * KiB,
  /** Content that is sealed in either, inflated. */
  signInKeptBytes: 64 * KiB,
  /** Tenants that one person may choose from. */
  signInTenants: 64,
  signInRules: 1000,
  signInRulesBytes: 1 * MiB,
  /** Values of one claim that rules look at. */
  signInClaimValues: 1000,
  signInReturnChars: 1024,
  sessionLifeMs: 12 * hours,
  /** The client that began it may be somebody else than the person: shorter. */
  deviceSessionLifeMs: 4 * hours,
  sessionLifeMaxMs: 30 * days,
  /** A one-time link, for development. */
  signInLinkMs: 60 * minutes,
  signInLinkBytes: 4 * KiB,
} as const;
