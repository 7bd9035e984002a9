/** The owner of a secret; each secret is sealed for its tenant, its peer and its field. */
import type { PeerId, TenantId } from '../../../../schemas/ids.ts';
import type { SecretPlace } from '../../../../schemas/records/sealed.ts';

export interface PeerOwner {
  readonly tenant: TenantId;
  readonly peer: PeerId;
}

type Field = Extract<SecretPlace, { of: 'peer' }>['field'];

export const placeOf = ({ tenant, peer }: PeerOwner, field: Field): SecretPlace => ({
  of: 'peer',
  tenant,
  peer,
  field,
});
