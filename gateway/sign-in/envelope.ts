/**
 * State of a sign-in, which the browser or the command line keeps: sealed, for one step, and for a
 * limited time. Any gateway with the same vault keys opens it (A1).
 */
import { deflateRawSync, inflateRawSync } from 'node:zlib';
import Type, { type Static, type TSchema } from 'typebox';
import { DecodeError, decoder } from '../../lib/decode.ts';
import { TenantId } from '../../schemas/ids.ts';
import { KiB } from '../../schemas/limits/units.ts';
import type { PassingPlace, Sealed } from '../../schemas/records/sealed.ts';
import { SealError, type Vault } from '../vault/vault.ts';
import type { Grant } from './mapping.ts';

/** Content that is sealed in either, inflated. */
const signInKeptBytes = 64 * KiB;

const untilMs = Type.Number();

/** Of a person in several tenants, who chooses one. */
const choice = {
  subject: Type.String(),
  grants: Type.Unsafe<readonly Grant[]>(
    Type.Array(Type.Object({ tenant: TenantId, scopes: Type.Array(Type.String()) })),
  ),
  untilMs,
};
/** The address of who began a sign-in by device, as the gateway saw it. */
const from = Type.String();

const steps = {
  /** Between the way to the provider and the way back. */
  flow: Type.Object({
    state: Type.String(),
    nonce: Type.String(),
    verifier: Type.String(),
    /** A path of this origin. */
    returnTo: Type.String(),
    /** The tenant that was asked for. */
    tenant: Type.Union([TenantId, Type.Null()]),
    untilMs,
  }),
  choice: Type.Object({ ...choice, returnTo: Type.String() }),
  /** Of a command line that waits for a sign-in in a browser. */
  device: Type.Object({ deviceCode: Type.String(), from, untilMs }),
  /** A choice for a command line: no cookie of a browser counts there, and none of it in one. */
  device_choice: Type.Object({ ...choice, from }),
  /** For the page that says which command line wants to sign in. */
  ask: Type.Object({ from, userCode: Type.String(), continueAt: Type.String(), atMs: Type.Number(), untilMs }),
} as const satisfies Record<PassingPlace['step'], TSchema>;

type Steps = typeof steps;
export type Step = keyof Steps;
export type Kept<S extends Step> = Static<Steps[S]>;

const decoders = {
  flow: decoder(steps.flow),
  choice: decoder(steps.choice),
  device: decoder(steps.device),
  device_choice: decoder(steps.device_choice),
  ask: decoder(steps.ask),
} as const;

export class Envelopes {
  readonly #vault: Vault;
  readonly #nowMs: () => number;

  constructor(vault: Vault, nowMs: () => number) {
    this.#vault = vault;
    this.#nowMs = nowMs;
  }

  seal<S extends Step>(step: S, kept: Kept<S>): string {
    return this.#vault.seal({ of: 'sign_in', step }, deflateRawSync(JSON.stringify(kept)));
  }

  /** Undefined if it was not sealed for this step, or its time is over. */
  open<S extends Step>(step: S, text: string): Kept<S> | undefined {
    try {
      const bytes = this.#vault.openBytes({ of: 'sign_in', step }, text as Sealed);
      const kept = decoders[step](inflateRawSync(bytes, { maxOutputLength: signInKeptBytes })) as Kept<S>;
      return kept.untilMs > this.#nowMs() ? kept : undefined;
    } catch (error) {
      // One of another release is one that says nothing.
      if (error instanceof SealError || error instanceof DecodeError) return undefined;
      throw error;
    }
  }
}
