/**
 * The text that an agent's key signs to have its expired credentials renewed. The answer is
 * credentials for that key alone, so they are of no use to anyone who relays or repeats the
 * request.
 */
import type { RenewBody } from '../../schemas/api/host.ts';
import { isSignedBy } from './quick-pair.ts';

/** The signed text: each field on a line of its own, after the name of this form. */
export const renewalText = ({ host_key, public_key, at, nonce }: Omit<RenewBody, 'signature'>): Buffer =>
  Buffer.from(['longshore-renew-1', host_key, public_key, at, nonce, ''].join('\n'));

/** True if the key that the request names has signed it. */
export const isSignedRenewal = ({ signature, ...signed }: RenewBody): boolean =>
  isSignedBy(signed.public_key, renewalText(signed), signature);
