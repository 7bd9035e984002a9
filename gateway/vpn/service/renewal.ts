/** When a certificate is renewed. Pure. */
import { limits } from '../../../schemas/limits.ts';
import type { KeptCertificate } from '../../../schemas/api/network.ts';

/** `notAfterMs`: how long a certificate that was made now would be good. */
export function isRenewalDue(
  { notAfterMs: endsMs }: Pick<KeptCertificate, 'notAfterMs'>,
  notAfterMs: number,
  nowMs: number,
  lifetimeMs: number = limits.certificateLifetimeMs,
): boolean {
  const left = endsMs - nowMs;
  return left < lifetimeMs * limits.certificateRenewFraction && notAfterMs - endsMs > limits.certificateGainMs;
}
