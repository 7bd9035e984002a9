/**
 * Certificates (RFC 5280) of a VPN network: its authority, its server, its peers. Pure: the caller
 * passes keys, serial numbers and times. node-forge encodes, node:crypto signs. The built-in IKEv2
 * clients explain the fields: the server's address is in the SAN, an IP address also as a dNSName
 * (Windows compares text), and there are the two key purposes that Apple and Windows require.
 */
import { createPublicKey } from 'node:crypto';
import { parseAddress } from '../../../schemas/cidr.ts';
import {
  explicit,
  implicit,
  integer,
  integerOfHex,
  isTrue,
  namedBits,
  objectId,
  ready,
  sequence,
  time,
  type Element,
} from './der.ts';
import {
  authorityKeyIdentifier,
  commonName,
  extension,
  signatureAlgorithm,
  signed,
  subjectKeyIdentifier,
  subjectOf,
} from './signed.ts';

interface Lifetime {
  /** Milliseconds are cut off. */
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

interface Common extends Lifetime {
  /** Hex. */
  readonly serial: string;
}

interface Authority {
  readonly caPem: string;
  readonly caKeyPem: string;
}

export interface CaInput extends Common {
  readonly network: string;
  readonly privateKeyPem: string;
  /** The only server that it may certify, beside its peers. `undefined` allows any name. */
  readonly constrainedTo?: string;
}

/**
 * The domain of a network's peers. ICANN reserved `.internal` for private use in 2024; the label
 * before it is the network's name.
 */
export const domainOfPeers = (network: string): string => `${network}.internal`;

export interface ServerInput extends Common, Authority {
  readonly publicKeyPem: string;
  /** A host name or an address. */
  readonly endpoint: string;
  readonly crlUrl?: string;
}

export interface ClientInput extends Common, Authority {
  readonly publicKeyPem: string;
  readonly localId: string;
  readonly crlUrl: string;
}

export const pemOf = (der: Uint8Array): string => {
  const lines = Buffer.from(der)
    .toString('base64')
    .replaceAll(/.{64}(?=.)/g, '$&\n');
  return `-----BEGIN CERTIFICATE-----\n${lines}\n-----END CERTIFICATE-----\n`;
};

/** The public key of a private or public key. */
export const publicKeyPemOf = (keyPem: string): string =>
  createPublicKey(keyPem).export({ type: 'spki', format: 'pem' }).toString();

/** Bits of section 4.2.1.3. */
const usages = { digitalSignature: 0, keyEncipherment: 2, keyCertSign: 5, crlSign: 6 } as const;

const keyUsage = (...names: readonly (keyof typeof usages)[]): Element =>
  extension('2.5.29.15', namedBits(names.map((name) => usages[name])), { critical: true });

const purposes = {
  serverAuth: '1.3.6.1.5.5.7.3.1',
  clientAuth: '1.3.6.1.5.5.7.3.2',
  /**
   * Older clients of Apple and Windows require it of an IKE server (IPsec certificate profile, "IKE
   * intermediate").
   */
  ikeIntermediate: '1.3.6.1.5.5.8.2.2',
} as const;

const extendedKeyUsage = (...names: readonly (keyof typeof purposes)[]): Element =>
  extension('2.5.29.37', sequence(...names.map((name) => objectId(purposes[name]))));

const endEntity = (): Element => extension('2.5.29.19', sequence(), { critical: true });

/** Section 4.2.1.6. */
const dnsName = (text: string): Element => implicit(2, Buffer.from(text, 'latin1'));

const addressBytes = { 4: 4, 6: 16 } as const;

function bytesOf(text: string): Buffer | undefined {
  const address = parseAddress(text);
  if (address === undefined) return undefined;
  return Buffer.from(address.value.toString(16).padStart(2 * addressBytes[address.family], '0'), 'hex');
}

function addressName(text: string): Element | undefined {
  const bytes = bytesOf(text);
  return bytes === undefined ? undefined : implicit(7, bytes);
}

/**
 * Section 4.2.1.10: permits the names of the network's peers and the address of its server. A type
 * of name with a permitted tree is limited to its trees; if the server has no IP address, all
 * addresses are excluded.
 */
function nameConstraints(network: string, endpoint: string): Element {
  const names = [domainOfPeers(network), endpoint].map(dnsName);
  const address = bytesOf(endpoint);
  // An address and a mask of all ones.
  const permitted =
    address === undefined
      ? names
      : [...names, implicit(7, Buffer.concat([address, Buffer.alloc(address.length, 255)]))];
  const excluded = address === undefined ? [4, 16].map((bytes) => implicit(7, Buffer.alloc(2 * bytes))) : [];
  const subtrees = (tag: number, bases: readonly Element[]): Element =>
    explicit(tag, ...bases.map((base) => sequence(base)));
  return extension(
    '2.5.29.30',
    sequence(subtrees(0, permitted), ...(excluded.length === 0 ? [] : [subtrees(1, excluded)])),
    { critical: true },
  );
}

const subjectAltName = (...names: readonly Element[]): Element => extension('2.5.29.17', sequence(...names));

/** Section 4.2.1.13: one distribution point, by its URL. */
const crlDistributionPoint = (url: string): Element =>
  extension('2.5.29.31', sequence(sequence(explicit(0, explicit(0, implicit(6, Buffer.from(url, 'latin1')))))));

interface Content extends Common {
  readonly issuer: Element;
  readonly subject: Element;
  readonly publicKeyPem: string;
  readonly extensions: readonly Element[];
}

function certificate(content: Content, signingKeyPem: string): string {
  const { serial, issuer, subject, notBeforeMs, notAfterMs, publicKeyPem, extensions } = content;
  if (notAfterMs <= notBeforeMs) throw new RangeError('a certificate that ends before it begins');
  const v3 = 2;
  return pemOf(
    signed(
      sequence(
        explicit(0, integer(v3)),
        integerOfHex(serial),
        signatureAlgorithm(),
        issuer,
        sequence(time(notBeforeMs), time(notAfterMs)),
        subject,
        ready(createPublicKey(publicKeyPem).export({ type: 'spki', format: 'der' })),
        explicit(3, sequence(...extensions)),
      ),
      signingKeyPem,
    ),
  );
}

/** Issues a self-signed authority that cannot certify further authorities. */
export function issueCa({ network, privateKeyPem, constrainedTo, ...common }: CaInput): string {
  const name = commonName(`Longshore ${network} CA`);
  const publicKeyPem = publicKeyPemOf(privateKeyPem);
  return certificate(
    {
      ...common,
      issuer: name,
      subject: name,
      publicKeyPem,
      extensions: [
        extension('2.5.29.19', sequence(isTrue(), integer(0)), { critical: true }),
        keyUsage('keyCertSign', 'crlSign'),
        subjectKeyIdentifier(publicKeyPem),
        ...(constrainedTo === undefined ? [] : [nameConstraints(network, constrainedTo)]),
      ],
    },
    privateKeyPem,
  );
}

/** `ub-common-name` of appendix A.1. Clients compare the SAN, not this name. */
const commonNameMax = 64;

export function issueServer(input: ServerInput): string {
  const { endpoint, caPem, caKeyPem, publicKeyPem, crlUrl, ...common } = input;
  const address = addressName(endpoint);
  return certificate(
    {
      ...common,
      issuer: subjectOf(caPem),
      subject: commonName(endpoint.length <= commonNameMax ? endpoint : 'Longshore VPN server'),
      publicKeyPem,
      extensions: [
        endEntity(),
        keyUsage('digitalSignature', 'keyEncipherment'),
        extendedKeyUsage('serverAuth', 'ikeIntermediate'),
        subjectAltName(...(address === undefined ? [] : [address]), dnsName(endpoint)),
        subjectKeyIdentifier(publicKeyPem),
        authorityKeyIdentifier(caPem),
        ...(crlUrl === undefined ? [] : [crlDistributionPoint(crlUrl)]),
      ],
    },
    caKeyPem,
  );
}

export function issueClient({ localId, caPem, caKeyPem, publicKeyPem, crlUrl, ...common }: ClientInput): string {
  return certificate(
    {
      ...common,
      issuer: subjectOf(caPem),
      subject: commonName(localId),
      publicKeyPem,
      extensions: [
        endEntity(),
        keyUsage('digitalSignature'),
        extendedKeyUsage('clientAuth'),
        subjectAltName(dnsName(localId)),
        subjectKeyIdentifier(publicKeyPem),
        authorityKeyIdentifier(caPem),
        crlDistributionPoint(crlUrl),
      ],
    },
    caKeyPem,
  );
}
