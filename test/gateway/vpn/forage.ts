/** The VPN area over owners that answer as a test says, and threads whose products are given. */
import { Vault } from '../../../gateway/vault/vault.ts';
import type { JobInput, JobKind, JobOutput } from '../../../gateway/vpn/pki/jobs.ts';
import type { Keyring } from '../../../gateway/vpn/service/keyring.ts';
import { networkPlace } from '../../../gateway/vpn/service/networks/authority.ts';
import { placeOf } from '../../../gateway/vpn/service/peers/owner.ts';
import { createForage, type Forage } from '../../../gateway/vpn/vpn.ts';
import type { Outcome, Question } from '../../../lib/rpc/partition-client.ts';
import type { NetworkName } from '../../../schemas/ids.ts';
import type { NetworkRecord, NetworkSettings } from '../../../schemas/api/network.ts';
import type { PeerRecord } from '../../../schemas/api/peer.ts';
import { limits } from '../../../schemas/limits.ts';
import { servicesWith } from '../calls.ts';
import { recordingLog } from '../support.ts';
import { baseUrl, caPem, keys, networkWith, peerWith } from './support.ts';

const { publicKey, privateKey, presharedKey } = keys;
export const nowMs = Date.UTC(2026, 5, 1);
export const vault = new Vault([{ id: 'now', key: Buffer.alloc(32, 1) }]);

/** A network with all of its certificates' lives before it, whose secrets open. */
export function networkNow(settings: Partial<NetworkSettings> = {}): NetworkRecord {
  const network = networkWith(settings);
  const { name, wireguard, ca, server } = network;
  const seal = (field: 'wireguard' | 'ca' | 'server', secret = `${field} key`) =>
    vault.seal(networkPlace(name, field), secret);
  return {
    ...network,
    wireguard: { ...wireguard, privateKey: seal('wireguard', privateKey) },
    ca: { ...ca, notAfterMs: nowMs + limits.caLifetimeMs, privateKey: seal('ca') },
    server: {
      ...server,
      notBeforeMs: nowMs,
      notAfterMs: nowMs + limits.certificateLifetimeMs,
      privateKey: seal('server'),
    },
  };
}

/** A peer with all of its certificate's life before it, whose secrets open. */
export function peerNow(change: Partial<PeerRecord> = {}): PeerRecord {
  const peer = peerWith();
  const seal = (field: 'wireguard' | 'preshared' | 'certificate' | 'password', secret = `${field} secret`) =>
    vault.seal(placeOf({ tenant: peer.tenant, peer: peer.id }, field), secret);
  return {
    ...peer,
    p12Password: seal('password'),
    wireguard: {
      publicKey,
      privateKey: seal('wireguard', privateKey),
      presharedKey: seal('preshared', presharedKey),
    },
    certificate: {
      ...peer.certificate,
      notAfterMs: nowMs + limits.certificateLifetimeMs,
      privateKey: seal('certificate'),
    },
    ...change,
  };
}

const certificate = { pem: caPem, serial: '0a', notBeforeMs: nowMs, notAfterMs: nowMs + 1 };
const withKey = (privateKeyPem: string) => ({ certificate, privateKeyPem });
const products: { readonly [K in JobKind]: JobOutput<K> } = {
  peer: { ...withKey('peer key'), wireguard: { publicKey, privateKey }, presharedKey },
  client: { certificate },
  network: { wireguard: { publicKey, privateKey }, ca: withKey('ca key'), server: withKey('server key') },
  server: { certificate },
  ca: { certificate },
  crl: Buffer.from('crl'),
  p12: Buffer.from('p12'),
  qr: { svg: '<svg/>' },
};

export type Answers = Partial<Record<Question['type'], (question: Question) => Outcome>>;

/** An ask without an answer fails the test. */
export function forageWith(answers: Answers, made: Partial<typeof products> = {}) {
  const log = recordingLog();
  const clock = { nowMs: () => nowMs, monotonicMs: () => 0 };
  const services = servicesWith(
    (question) => {
      const answer = answers[question.type];
      if (answer === undefined) throw new Error(`${question.type} is not expected`);
      return answer(question);
    },
    { log, clock },
  );
  const jobs: { readonly kind: JobKind; readonly input: unknown; readonly deadlineMs: number | undefined }[] = [];
  const pool: Keyring['pool'] = {
    run: async <K extends JobKind>(kind: K, input: JobInput<K>, deadlineMs?: number): Promise<JobOutput<K>> => {
      jobs.push({ kind, input, deadlineMs });
      return Promise.resolve({ ...products, ...made }[kind]);
    },
  };
  const keyring: Keyring = { vault, pool };
  const forage: Forage = {
    ...createForage({
      ...services,
      vault: undefined,
      publicUrl: () => baseUrl,
      tenantRanges: () => ({ ipv4: '10.200.0.0/16', ipv6: 'fd5e:1:2::/48' }),
      defaultNetwork: 'default' as NetworkName,
      metricsToken: undefined,
      version: '1',
    }),
    keyring,
  };
  const { asked, failures } = services;
  const types = (): string[] => asked.map(({ question }) => question.type);
  return { forage, keyring, jobs, asked, types, failures, log };
}
