/** Rules for the renewal of certificates. Pure. */
import { limits } from '../../../schemas/limits.ts';
import type { KeptCertificate } from '../../../schemas/api/network.ts';
import { days } from '../../../schemas/limits/units.ts';

/**
 * Apple accepts no longer server certificate. RFC 5280 section 4.1.2.5 counts its first and its
 * last second.
 */
export const certificateSpanMaxMs = 825 * days;
/**
 * A certificate is not renewed if the new one would last less than this longer: clocks differ, and
 * certificates end on a whole second.
 */
export const certificateGainMs = 1 * days;

/** `notAfterMs`: when a certificate made now would expire. */
export function isRenewalDue(
  { notAfterMs: endsMs }: Pick<KeptCertificate, 'notAfterMs'>,
  notAfterMs: number,
  nowMs: number,
  lifetimeMs: number = limits.certificateLifetimeMs,
): boolean {
  const left = endsMs - nowMs;
  return left < lifetimeMs * limits.certificateRenewFraction && notAfterMs - endsMs > certificateGainMs;
}

/** True if Apple's devices refuse the certificate of a server: older releases made such ones. */
export const isTooLong = ({ notBeforeMs, notAfterMs }: Pick<KeptCertificate, 'notBeforeMs' | 'notAfterMs'>): boolean =>
  notAfterMs + 1000 - notBeforeMs > certificateSpanMaxMs;
