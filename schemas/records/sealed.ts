/** Values at rest that only gateways can open, and where they are kept (gateway/vault). */
import type { NetworkName, PeerId, TenantId } from '../ids.ts';

declare const sealed: unique symbol;
/**
 * A stored secret: `v1.<key id>.<wrapped data key>.<nonce and ciphertext>`, AES-256-GCM twice (a
 * data key for each secret, wrapped by the key with that id), bound to its place. Only gateways
 * have the keys.
 */
export type Sealed = string & { readonly [sealed]: true };

/**
 * The place of a sealed secret. The secret is authenticated with this text, so that it cannot be
 * moved to another place.
 */
export type SecretPlace =
  | {
      readonly of: 'peer';
      readonly tenant: TenantId;
      readonly peer: PeerId;
      readonly field: 'wireguard' | 'preshared' | 'certificate' | 'password';
    }
  | { readonly of: 'network'; readonly network: NetworkName; readonly field: 'wireguard' | 'ca' | 'server' }
  | { readonly of: 'secret'; readonly tenant: TenantId; readonly name: string; readonly version: number }
  /** A private key that the cluster signs tokens with. */
  | { readonly of: 'signing_key'; readonly id: string }
  /** A login's password. */
  | { readonly of: 'login'; readonly tenant: TenantId; readonly registry: string; readonly version: number };

/**
 * Of a sealed text that is stored nowhere: a browser or a command line keeps it during a sign-in,
 * and any gateway opens it.
 */
export interface PassingPlace {
  readonly of: 'sign_in';
  readonly step: 'flow' | 'choice' | 'device' | 'device_choice' | 'ask';
}

/** Of what is kept for a day, and is not sealed again under another key. */
export interface KeptPlace {
  readonly of: 'answer';
  readonly tenant: TenantId;
  /** Its `Idempotency-Key`, in base64url. */
  readonly key: string;
}

/** A secret that is not sealed under the current key yet. */
export interface StaleSecret {
  readonly place: SecretPlace;
  readonly sealed: Sealed;
}
