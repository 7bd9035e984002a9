/** A network's certificate authority, ready to sign. */
import type { NetworkName } from '../../../../schemas/ids.ts';
import type { NetworkRecord } from '../../../../schemas/api/network.ts';
import type { SecretPlace } from '../../../../schemas/records/sealed.ts';
import type { Vault } from '../../../vault/vault.ts';

type Field = Extract<SecretPlace, { of: 'network' }>['field'];

export const networkPlace = (network: NetworkName, field: Field): SecretPlace => ({ of: 'network', network, field });

/** @throws SealError */
export const authorityOf = ({ name, ca }: NetworkRecord, vault: Vault) => ({
  caPem: ca.pem,
  caKeyPem: vault.open(networkPlace(name, 'ca'), ca.privateKey),
});

/**
 * The URL of the revocation list, which the authority writes into every certificate that it signs.
 */
export const crlUrl = (publicUrl: string, network: NetworkName): string => `${publicUrl}/api/forage/crl/${network}`;
