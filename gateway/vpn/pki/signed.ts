/**
 * The common parts of certificates and revocation lists (RFC 5280): names, key identifiers,
 * extensions, the signature.
 */
import { createHash, createPublicKey, sign, X509Certificate, type KeyObject } from 'node:crypto';
import {
  bits,
  elementsOf,
  encode,
  implicit,
  isTrue,
  nothing,
  objectId,
  octets,
  ready,
  sequence,
  setOf,
  utf8,
  type Element,
} from './der.ts';

/** sha256WithRSAEncryption, RFC 4055 section 5. */
export const signatureAlgorithm = (): Element => sequence(objectId('1.2.840.113549.1.1.11'), nothing());

/** Signs: content, algorithm and signature (sections 4.1.1 and 5.1.1). */
export function signed(content: Element, privateKeyPem: string): Buffer {
  const der = encode(content);
  return encode(sequence(ready(der), signatureAlgorithm(), bits(sign('sha256', der, privateKeyPem))));
}

/** A name with one part, the CN. */
export const commonName = (text: string): Element => sequence(setOf(sequence(objectId('2.5.4.3'), utf8(text))));

/** The bytes of the certificate's subject, because clients compare names byte for byte. */
export function subjectOf(certificatePem: string): Element {
  const [content = new Uint8Array()] = elementsOf(new X509Certificate(certificatePem).raw);
  // version, serialNumber, signature, issuer, validity, subject
  const subject = elementsOf(content)[5];
  if (subject === undefined) throw new Error('the certificate has no subject');
  return ready(subject);
}

export const extension = (id: string, value: Element, options: { readonly critical?: true } = {}): Element =>
  sequence(objectId(id), ...(options.critical === true ? [isTrue()] : []), octets(encode(value)));

/** Section 4.2.1.2, method 1: SHA-1 identifies the key and protects nothing. */
const identifierOf = (publicKey: KeyObject): Buffer =>
  createHash('sha1')
    .update(publicKey.export({ type: 'pkcs1', format: 'der' }))
    .digest();

export const subjectKeyIdentifier = (publicKeyPem: string): Element =>
  extension('2.5.29.14', octets(identifierOf(createPublicKey(publicKeyPem))));

/** Names the issuer's key, not its certificate, because the certificate may be renewed. */
export const authorityKeyIdentifier = (caPem: string): Element =>
  extension('2.5.29.35', sequence(implicit(0, identifierOf(new X509Certificate(caPem).publicKey))));
