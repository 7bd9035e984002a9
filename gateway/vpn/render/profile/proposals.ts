/**
 * What is offered in IKEv2, once for all files. AES-256 in CBC with SHA-256 and the 2048-bit MODP
 * group is what every built-in client can; GCM with elliptic curves is what those take that can
 * choose.
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
  /** Of a later rekeying; the first keys come of the IKE exchange. */
  readonly dh: string | null;
}

/** The first is every platform's. */
export const ikeProposals: readonly [IkeProposal, ...IkeProposal[]] = [
  { encryption: 'aes256', integrity: 'sha256', prf: 'prfsha256', dh: 'modp2048' },
  { encryption: 'aes256gcm16', integrity: null, prf: 'prfsha256', dh: 'ecp256' },
  { encryption: 'aes256gcm16', integrity: null, prf: 'prfsha384', dh: 'ecp384' },
];

/** Without a group: what Windows asks for; with it: what rekeys with forward secrecy. */
export const espProposals: readonly [EspProposal, ...EspProposal[]] = [
  { encryption: 'aes256', integrity: 'sha256', dh: null },
  { encryption: 'aes256', integrity: 'sha256', dh: 'modp2048' },
  { encryption: 'aes256gcm16', integrity: null, dh: 'ecp256' },
  { encryption: 'aes256gcm16', integrity: null, dh: 'ecp384' },
  { encryption: 'aes256gcm16', integrity: null, dh: null },
];

const joined = (...parts: readonly (string | null)[]): string => parts.filter((part) => part !== null).join('-');

/** In strongSwan's words. With an integrity algorithm the PRF goes without saying. */
export const ikeText = ({ encryption, integrity, prf, dh }: IkeProposal): string =>
  joined(encryption, integrity ?? prf, dh);
export const espText = ({ encryption, integrity, dh }: EspProposal): string => joined(encryption, integrity, dh);

/** Where strongSwan is at both ends. */
export const strongIke = 'aes256gcm16-prfsha384-ecp384';
export const strongEsp = 'aes256gcm16-ecp384';

/** Strongest first: a server prefers its own order. */
export const ikeTexts = (): string => ikeProposals.toReversed().map(ikeText).join(', ');
export const espTexts = (): string =>
  espProposals
    .toReversed()
    .toSorted((one, other) => Number(one.dh === null) - Number(other.dh === null))
    .map(espText)
    .join(', ');
