/** Rules for the renewal of certificates. Pure. */
import { limits } from '../../../schemas/limits.ts';
import type { KeptCertificate } from '../../../schemas/api/network.ts';

/** `notAfterMs`: when a certificate made now would expire. */
export function isRenewalDue(
  { notAfterMs: endsMs }: Pick<KeptCertificate, 'notAfterMs'>,
  notAfterMs: number,
  nowMs: number,
  lifetimeMs: number = limits.certificateLifetimeMs,
): boolean {
  const left = endsMs - nowMs;
  return left < lifetimeMs * limits.certificateRenewFraction && notAfterMs - endsMs > limits.certificateGainMs;
}

/** True if Apple's devices refuse the certificate of a server: older releases made such ones. */
export const isTooLong = ({ notBeforeMs, notAfterMs }: Pick<KeptCertificate, 'notBeforeMs' | 'notAfterMs'>): boolean =>
  notAfterMs + 1000 - notBeforeMs > limits.certificateSpanMaxMs;
