/**
 * Secrets of the VPN networks that this host serves: their private keys, and the preshared keys of
 * their peers, by the public key that each belongs to.
 */
import type { Log } from '../../lib/log.ts';
import { sleep } from '../../lib/time/backoff.ts';
import type { KnownSecrets, VpnKeyOf } from '../network/vpn.ts';
import type { SealedKey } from './sealed-cache.ts';
import type { Values } from './values.ts';

export interface VpnKeysParts {
  readonly values: Pick<Values, 'vpnKey'>;
  readonly log: Log;
}

export class VpnKeys implements KnownSecrets {
  readonly #parts: VpnKeysParts;
  readonly #secrets = new Map<string, string>();
  #wanted: ReadonlyMap<string, VpnKeyOf> = new Map();
  #asking: Promise<void> | undefined;
  #why: string | undefined;

  constructor(parts: VpnKeysParts) {
    this.#parts = parts;
  }

  of(publicKey: string): string | undefined {
    return this.#secrets.get(publicKey);
  }

  get why(): string | undefined {
    return this.#why;
  }

  want(wanted: ReadonlyMap<string, VpnKeyOf>, onCame: () => void): void {
    this.#wanted = wanted;
    for (const key of this.#secrets.keys()) if (!wanted.has(key)) this.#secrets.delete(key);
    const lacking = [...wanted].filter(([key]) => !this.#secrets.has(key));
    if (lacking.length === 0) this.#why = undefined;
    if (lacking.length === 0 || this.#asking !== undefined) return;
    this.#asking = this.#ask(lacking).then((came) => {
      this.#asking = undefined;
      // Secrets that were wanted meanwhile are asked for by the next call of `want`, which `onCame`
      // causes.
      if (came > 0) onCame();
    });
  }

  async tried(waitMs: number): Promise<void> {
    const late = new AbortController();
    await Promise.race([this.#asking, sleep(waitMs, late.signal)]);
    late.abort();
  }

  /** The keys whose secrets the disk has to keep. */
  kept(): SealedKey[] {
    return Array.from(this.#wanted.keys(), (publicKey) => ({ publicKey }));
  }

  async #ask(lacking: readonly (readonly [string, VpnKeyOf])[]): Promise<number> {
    let came = 0;
    let why: string | undefined;
    await Promise.all(
      lacking.map(async ([publicKey, of]) => {
        const given = await this.#parts.values.vpnKey(publicKey, of);
        if (given.kind === 'missing') {
          why = given.why;
          this.#parts.log.debug('vpn_key_missing', { ...of, why });
        } else {
          this.#secrets.set(publicKey, given.key);
          came++;
        }
      }),
    );
    this.#why = why;
    return came;
  }
}
