/**
 * The IKEv2 proposals of all files. Every built-in client supports AES-256-CBC with SHA-256 and the
 * 2048-bit MODP group; clients with a choice use GCM with elliptic curves.
 */
export interface IkeProposal {
  readonly encryption: string;
  readonly integrity: string | null;
  readonly prf: string;
  readonly dh: string;
}

export interface EspProposal {
  readonly encryption: string;
  readonly integrity: string | null;
  /** The group of a later rekeying; the first keys come from the IKE exchange. */
  readonly dh: string | null;
}

/** Every platform supports the first. */
export const ikeProposals: readonly [IkeProposal, ...IkeProposal[]] = [
  { encryption: 'aes256', integrity: 'sha256', prf: 'prfsha256', dh: 'modp2048' },
  { encryption: 'aes256gcm16', integrity: null, prf: 'prfsha256', dh: 'ecp256' },
  { encryption: 'aes256gcm16', integrity: null, prf: 'prfsha384', dh: 'ecp384' },
];

/** Windows proposes no group; with a group, rekeying has forward secrecy. */
export const espProposals: readonly [EspProposal, ...EspProposal[]] = [
  { encryption: 'aes256', integrity: 'sha256', dh: null },
  { encryption: 'aes256', integrity: 'sha256', dh: 'modp2048' },
  { encryption: 'aes256gcm16', integrity: null, dh: 'ecp256' },
  { encryption: 'aes256gcm16', integrity: null, dh: 'ecp384' },
  { encryption: 'aes256gcm16', integrity: null, dh: null },
];

const joined = (...parts: readonly (string | null)[]): string => parts.filter((part) => part !== null).join('-');

/** In strongSwan's notation, where an integrity algorithm implies the PRF. */
export const ikeText = ({ encryption, integrity, prf, dh }: IkeProposal): string =>
  joined(encryption, integrity ?? prf, dh);
export const espText = ({ encryption, integrity, dh }: EspProposal): string => joined(encryption, integrity, dh);

/** For strongSwan at both ends. */
export const strongIke = 'aes256gcm16-prfsha384-ecp384';
export const strongEsp = 'aes256gcm16-ecp384';

/**
 * Strongest first, because a server prefers its own order. In swanctl.conf commas separate them.
 */
export const ikeTexts = (separator = ', '): string => ikeProposals.toReversed().map(ikeText).join(separator);
export const espTexts = (separator = ', '): string =>
  espProposals
    .toReversed()
    .toSorted((one, other) => Number(one.dh === null) - Number(other.dh === null))
    .map(espText)
    .join(separator);
