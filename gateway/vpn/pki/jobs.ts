/**
 * The jobs of the pool's threads: the inputs and outputs of each kind, as they cross between
 * threads.
 */
import type { KeptCertificate, RevocationEntry } from '../../../schemas/api/network.ts';
import type { WireguardKeys } from '../../../lib/wireguard-keys.ts';

/** A certificate as it is stored, before its key is sealed. */
export type IssuedCertificate = Omit<KeptCertificate, 'privateKey'>;

export interface Issued {
  readonly certificate: IssuedCertificate;
}

/** PKCS#8, PEM. */
interface WithKey {
  readonly privateKeyPem: string;
}

interface Authority {
  readonly caPem: string;
  readonly caKeyPem: string;
}

interface ClientInput extends Authority {
  /** CN and SAN. */
  readonly localId: string;
  readonly crlUrl: string;
  readonly notBeforeMs: number;
  /** The certificate ends then, or with its authority if that ends earlier. */
  readonly notAfterMs: number;
}

export type BundleEncryption = 'compat' | 'modern';

export interface Jobs {
  /** All keys of a new peer. */
  peer: {
    readonly input: ClientInput;
    readonly output: Issued & WithKey & { readonly wireguard: WireguardKeys; readonly presharedKey: string };
  };
  /** A new certificate for a peer's present key. */
  client: { readonly input: ClientInput & WithKey; readonly output: Issued };
  /** All keys of a new network. */
  network: {
    readonly input: {
      readonly network: string;
      readonly endpoint: string;
      readonly crlUrl: string;
      /** True if the authority may certify only this endpoint and the network's peers. */
      readonly nameConstraints: boolean;
      readonly nowMs: number;
    };
    readonly output: {
      readonly wireguard: WireguardKeys;
      readonly ca: Issued & WithKey;
      readonly server: Issued & WithKey;
    };
  };
  /** A new certificate for the server's present key. */
  server: {
    readonly input: Authority &
      WithKey & { readonly endpoint: string; readonly crlUrl: string; readonly nowMs: number };
    readonly output: Issued;
  };
  /**
   * A new certificate for the authority's present key; certificates that it signed remain valid.
   */
  ca: {
    readonly input: WithKey & {
      readonly network: string;
      readonly constrainedTo?: string;
      readonly nowMs: number;
    };
    readonly output: Issued;
  };
  /** DER. */
  crl: {
    readonly input: Authority & {
      readonly number: number;
      readonly thisUpdateMs: number;
      readonly nextUpdateMs: number;
      readonly entries: readonly RevocationEntry[];
    };
    readonly output: Uint8Array;
  };
  p12: {
    readonly input: WithKey & {
      readonly certificatePem: string;
      readonly caPem: string;
      readonly password: string;
      readonly friendlyName: string;
      readonly encryption: BundleEncryption;
    };
    readonly output: Uint8Array;
  };
  qr: { readonly input: { readonly text: string }; readonly output: { readonly svg: string } | 'too_large' };
}

export type JobKind = keyof Jobs;
export type JobInput<K extends JobKind> = Jobs[K]['input'];
export type JobOutput<K extends JobKind> = Jobs[K]['output'];

/** A job with `spareKeyPem`, an RSA key made ahead for the peer. */
export type JobOrder = {
  [K in JobKind]: { readonly kind: K; readonly input: JobInput<K>; readonly spareKeyPem?: string };
}[JobKind];

/** A message to a thread, which handles one at a time. */
export type Order = { readonly kind: 'spare' } | JobOrder;

/** A thread's answer to its last order. The text of a failure contains no secret. */
export type Report = { readonly ok: true; readonly output: unknown } | { readonly ok: false; readonly message: string };
