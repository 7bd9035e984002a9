/**
 * Certificate revocation lists (RFC 5280 section 5). Pure: the caller passes number, times and key.
 */
import type { RevocationEntry } from '../../../schemas/api/network.ts';
import {
  encode,
  enumerated,
  explicit,
  integer,
  integerOfHex,
  sequence,
  sequenceOf,
  time,
  type Element,
} from './der.ts';
import { authorityKeyIdentifier, extension, signatureAlgorithm, signed, subjectOf } from './signed.ts';

export interface CrlInput {
  readonly caPem: string;
  readonly caKeyPem: string;
  /** A list with a higher number is newer. */
  readonly number: number | bigint;
  readonly thisUpdateMs: number;
  readonly nextUpdateMs: number;
  readonly entries: readonly RevocationEntry[];
}

/** Section 5.3.1. */
const reasonCodes = {
  keyCompromise: 1,
  superseded: 4,
  cessationOfOperation: 5,
  certificateHold: 6,
} as const satisfies Record<RevocationEntry['reason'], number>;

const line = ({ serial, atMs, reason }: RevocationEntry): Element =>
  sequence(integerOfHex(serial), time(atMs), sequence(extension('2.5.29.21', enumerated(reasonCodes[reason]))));

/** DER. */
export function issueCrl({ caPem, caKeyPem, number, thisUpdateMs, nextUpdateMs, entries }: CrlInput): Uint8Array {
  const v2 = 1;
  return signed(
    sequence(
      integer(v2),
      signatureAlgorithm(),
      subjectOf(caPem),
      time(thisUpdateMs),
      time(nextUpdateMs),
      // Encoded entry by entry, so that a long list is not a tree in memory as well. Absent if
      // empty (section 5.1.2.6).
      ...(entries.length === 0 ? [] : [sequenceOf(Buffer.concat(entries.map((entry) => encode(line(entry)))))]),
      explicit(0, sequence(authorityKeyIdentifier(caPem), extension('2.5.29.20', integer(number)))),
    ),
    caKeyPem,
  );
}
