/**
 * The files of a peer. QR codes and bundles take milliseconds: worker threads make them, and the
 * cache lets a burst of downloads make each only once. Texts that take cryptography are cached as
 * well. The cache's key includes the peer's generation, which rises with every change that a file
 * shows, and the time of its last change, because a restore gives generations out again.
 */
import { LRUCache } from 'lru-cache';
import { limits } from '../../../schemas/limits.ts';
import type { SecretPlace } from '../../../schemas/records/sealed.ts';
import { invalid } from '../../http/respond.ts';
import { profileOf } from '../render/profile/profile.ts';
import { clientConf } from '../render/wireguard/wireguard.ts';
import { withoutIpv6, type Subject } from '../render/subject.ts';
import type { Asker } from './actors.ts';
import type { Keyring } from './keyring.ts';
import { Refusal } from './refusal.ts';
import { MiB } from '../../../schemas/limits/units.ts';

/** Bounds of the cache of files that are made for peers. */
const artifactCacheBytes = 64 * MiB;
const artifactCacheEntries = 20_000;

export type Encryption = 'compat' | 'modern';

/** IPv6 on the device's system. */
export type Ipv6 = 'on' | 'off';

/** Measures how long an artifact takes to make; cached ones are not measured. */
export type BuildTimer = <T>(artifact: string, build: () => Promise<T>) => Promise<T>;

const keyOf = ({ peer, network }: Subject, what: string): string =>
  `${peer.tenant}/${peer.id}/${peer.generation}/${peer.updatedAtMs}/${network.updatedAtMs}/${what}`;

const secretOf = ({ peer }: Subject, field: Extract<SecretPlace, { of: 'peer' }>['field']) =>
  ({ of: 'peer', tenant: peer.tenant, peer: peer.id, field }) as const;

function confOf(subject: Subject, { vault }: Keyring, ipv6: Ipv6): string {
  const { wireguard } = subject.peer;
  return clientConf(ipv6 === 'on' ? subject : withoutIpv6(subject), {
    privateKey: vault.open(secretOf(subject, 'wireguard'), wireguard.privateKey),
    presharedKey: vault.open(secretOf(subject, 'preshared'), wireguard.presharedKey),
  });
}

export class Artifacts {
  readonly #timed: BuildTimer;
  readonly #kept = new LRUCache<string, Uint8Array>({
    max: artifactCacheEntries,
    maxSize: artifactCacheBytes,
    sizeCalculation: (bytes) => bytes.byteLength,
  });
  readonly #making = new Map<string, Promise<Uint8Array>>();

  constructor(timed: BuildTimer) {
    this.#timed = timed;
  }

  /** The WireGuard file. Cached, because opening its seals costs more than the rest. */
  conf(subject: Subject, keyring: Keyring, ipv6: Ipv6 = 'on'): Uint8Array {
    return this.#rendered(keyOf(subject, `conf ${ipv6}`), () => confOf(subject, keyring, ipv6));
  }

  /** The profile as JSON. Cached, because making it takes parsing the certificates. */
  profile(subject: Subject): Uint8Array {
    return this.#rendered(keyOf(subject, 'profile'), () => JSON.stringify(profileOf(subject)));
  }

  /** @throws Refusal if the text is longer than a QR code holds. */
  qr(asker: Asker, subject: Subject, keyring: Keyring, ipv6: Ipv6 = 'on'): Promise<Uint8Array> {
    return this.#once(keyOf(subject, `qr ${ipv6}`), 'qr', async () => {
      const text = confOf(subject, keyring, ipv6);
      const made = await keyring.pool.run('qr', { text }, asker.deadlineMs);
      if (made !== 'too_large') return Buffer.from(made.svg);
      throw new Refusal(
        invalid({
          _: [
            `the configuration is over ${limits.qrBytes} bytes, more than a QR code holds; download the file instead`,
          ],
        }),
      );
    });
  }

  bundle(asker: Asker, subject: Subject, encryption: Encryption, { vault, pool }: Keyring): Promise<Uint8Array> {
    const { peer, network } = subject;
    return this.#once(keyOf(subject, `p12 ${encryption}`), 'p12', () =>
      pool.run(
        'p12',
        {
          certificatePem: peer.certificate.pem,
          caPem: network.ca.pem,
          privateKeyPem: vault.open(secretOf(subject, 'certificate'), peer.certificate.privateKey),
          password: vault.open(secretOf(subject, 'password'), peer.p12Password),
          friendlyName: peer.name,
          encryption,
        },
        asker.deadlineMs,
      ),
    );
  }

  #rendered(key: string, render: () => string): Uint8Array {
    const kept = this.#kept.get(key);
    if (kept !== undefined) return kept;
    const made = Buffer.from(render());
    this.#kept.set(key, made);
    return made;
  }

  #once(key: string, artifact: string, make: () => Promise<Uint8Array>): Promise<Uint8Array> {
    const kept = this.#kept.get(key);
    if (kept !== undefined) return Promise.resolve(kept);
    const known = this.#making.get(key);
    if (known !== undefined) return known;
    const making = this.#timed(artifact, make)
      .then((bytes) => {
        this.#kept.set(key, bytes);
        return bytes;
      })
      .finally(() => this.#making.delete(key));
    this.#making.set(key, making);
    return making;
  }
}
