/**
 * The work of the pool's threads: this file draws keys, and pure files beside it make certificates
 * and bundles.
 */
import { generateKeyPairSync, randomBytes, X509Certificate } from 'node:crypto';
import { newWireguardKeys } from '../../../lib/wireguard-keys.ts';
import { limits } from '../../../schemas/limits.ts';
import { qrSvg } from '../render/wireguard/qr.ts';
import { issueCrl } from './crl.ts';
import type { IssuedCertificate, JobInput, JobKind, JobOutput, Order } from './jobs.ts';
import { buildBundle } from './pkcs12.ts';
import { newPresharedKey, newSerial } from './secrets.ts';
import { issueCa, issueClient, issueServer, publicKeyPemOf } from './x509.ts';

/**
 * RSA key sizes in bits. A device uses its key in each handshake and gets its own, so its key is
 * short. Authorities and servers keep their keys as long as the network lives, and NIST SP 800-57
 * part 1 ends the use of 2048 bits in 2030.
 */
const rsaBits = { client: 2048, server: 3072, authority: 3072 } as const;

function newRsaKey(of: keyof typeof rsaBits): string {
  const { privateKey } = generateKeyPairSync('rsa', { modulusLength: rsaBits[of] });
  return privateKey.export({ type: 'pkcs8', format: 'pem' }).toString();
}

interface Lifetime {
  readonly notBeforeMs: number;
  readonly notAfterMs: number;
}

/** Certificates count whole seconds, so the stored times do too. */
const inSeconds = ({ notBeforeMs, notAfterMs }: Lifetime): Lifetime => ({
  notBeforeMs: Math.floor(notBeforeMs / 1000) * 1000,
  notAfterMs: Math.floor(notAfterMs / 1000) * 1000,
});

const lifetimeFrom = (nowMs: number, lifetimeMs: number): Lifetime => ({
  notBeforeMs: nowMs - limits.certificateBackdateMs,
  notAfterMs: nowMs + lifetimeMs,
});

/** No certificate outlives its authority. */
const within = (caPem: string, { notBeforeMs, notAfterMs }: Lifetime): Lifetime => ({
  notBeforeMs,
  notAfterMs: Math.min(notAfterMs, Date.parse(new X509Certificate(caPem).validTo)),
});

function issued(lifetime: Lifetime, issue: (given: Lifetime & { serial: string }) => string): IssuedCertificate {
  const given = { ...inSeconds(lifetime), serial: newSerial() };
  return { pem: issue(given), ...given };
}

const clientCertificate = (input: JobInput<'client'>): IssuedCertificate =>
  issued(within(input.caPem, input), (given) =>
    issueClient({ ...input, ...given, publicKeyPem: publicKeyPemOf(input.privateKeyPem) }),
  );

const serverCertificate = ({ nowMs, ...input }: JobInput<'server'>): IssuedCertificate =>
  issued(within(input.caPem, lifetimeFrom(nowMs, limits.certificateLifetimeMs)), (given) =>
    issueServer({ ...input, ...given, publicKeyPem: publicKeyPemOf(input.privateKeyPem) }),
  );

const caCertificate = ({ nowMs, ...input }: JobInput<'ca'>): IssuedCertificate =>
  issued(lifetimeFrom(nowMs, limits.caLifetimeMs), (given) => issueCa({ ...input, ...given }));

function newPeer(input: JobInput<'peer'>, privateKeyPem = newRsaKey('client')): JobOutput<'peer'> {
  return {
    wireguard: newWireguardKeys(),
    presharedKey: newPresharedKey(),
    privateKeyPem,
    certificate: clientCertificate({ ...input, privateKeyPem }),
  };
}

function newNetwork(input: JobInput<'network'>): JobOutput<'network'> {
  const { network, endpoint, crlUrl, nowMs } = input;
  const [caKeyPem, serverKeyPem] = [newRsaKey('authority'), newRsaKey('server')];
  const constraint = input.nameConstraints ? { constrainedTo: endpoint } : {};
  const ca = caCertificate({ network, nowMs, privateKeyPem: caKeyPem, ...constraint });
  const server = serverCertificate({ endpoint, crlUrl, nowMs, caPem: ca.pem, caKeyPem, privateKeyPem: serverKeyPem });
  return {
    wireguard: newWireguardKeys(),
    ca: { certificate: ca, privateKeyPem: caKeyPem },
    server: { certificate: server, privateKeyPem: serverKeyPem },
  };
}

function picture({ text }: JobInput<'qr'>): JobOutput<'qr'> {
  const svg = qrSvg(text);
  return svg === undefined ? 'too_large' : { svg };
}

const unreachable = (order: never): never => {
  throw new Error(`no such work: ${Object.keys(order).join()}`);
};

/** Executes an order. @returns the output of a job, or a spare key as PEM */
export function perform(order: Order): JobOutput<JobKind> | string {
  switch (order.kind) {
    case 'spare':
      return newRsaKey('client');
    case 'peer':
      return newPeer(order.input, order.spareKeyPem);
    case 'client':
      return { certificate: clientCertificate(order.input) };
    case 'network':
      return newNetwork(order.input);
    case 'server':
      return { certificate: serverCertificate(order.input) };
    case 'ca':
      return { certificate: caCertificate(order.input) };
    case 'crl':
      return issueCrl(order.input);
    case 'p12':
      return buildBundle({ ...order.input, random: randomBytes });
    case 'qr':
      return picture(order.input);
    default:
      return unreachable(order);
  }
}
