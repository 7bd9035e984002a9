/**
 * Secrets of the VPN networks that this host serves: their private keys, and the preshared keys of
 * their peers, with the certificates of both, by the public key that each belongs to.
 */
import { X509Certificate } from 'node:crypto';
import { isDeepStrictEqual } from 'node:util';
import type { Log } from '../../lib/log.ts';
import { sleep } from '../../lib/time/backoff.ts';
import { limits } from '../../schemas/limits.ts';
import { days } from '../../schemas/limits/units.ts';
import type { KnownSecrets, VpnKeyOf } from '../network/vpn.ts';
import type { UnsealedKey } from '../../schemas/wire/unseal.ts';
import type { SealedKey } from './sealed-cache.ts';
import type { Values } from './values.ts';

/** The pause before the control plane is asked again for keys that it did not answer for. */
const retryMs = 250;
/** Between two asks for the renewal of a certificate. */
const renewEveryMs = 1 * days;

export interface VpnKeysParts {
  readonly values: Pick<Values, 'vpnKey'>;
  /** Wall time. */
  readonly nowMs: () => number;
  readonly log: Log;
}

export class VpnKeys implements KnownSecrets {
  readonly #parts: VpnKeysParts;
  readonly #secrets = new Map<string, UnsealedKey>();
  /** Wall times from which on the certificates of servers may be renewed. */
  readonly #renewable = new Map<string, number>();
  #wanted: ReadonlyMap<string, VpnKeyOf> = new Map();
  #onCame: () => void = () => {};
  #asking: Promise<void> | undefined;
  #why: string | undefined;
  /** `true` if the control plane did not answer for one that is lacking. */
  #isUnanswered = false;

  constructor(parts: VpnKeysParts) {
    this.#parts = parts;
  }

  of(publicKey: string): UnsealedKey | undefined {
    return this.#secrets.get(publicKey);
  }

  get why(): string | undefined {
    return this.#why;
  }

  want(wanted: ReadonlyMap<string, VpnKeyOf>, onCame: () => void): void {
    this.#wanted = wanted;
    this.#onCame = onCame;
    for (const key of this.#secrets.keys()) if (!wanted.has(key)) this.#forget(key);
    const lacking = [...wanted].filter(([key, of]) => !suffices(this.#secrets.get(key), of));
    if (lacking.length === 0) [this.#why, this.#isUnanswered] = [undefined, false];
    if (this.#asking !== undefined) return;
    const asked = lacking.length > 0 ? this.#ask(lacking) : this.#renew(wanted);
    this.#asking = asked?.then((came) => {
      this.#asking = undefined;
      // Secrets that were wanted meanwhile are asked for by the next call of `want`, which `onCame`
      // causes.
      if (came > 0) onCame();
    });
  }

  async tried(waitMs: number): Promise<void> {
    const late = new AbortController();
    await Promise.race([this.#answered(late.signal), sleep(waitMs, late.signal)]);
    late.abort();
  }

  /** An agent that has just started may not be connected yet, so it asks again. */
  async #answered(late: AbortSignal): Promise<void> {
    await this.#asking;
    while (this.#isUnanswered && !late.aborted) {
      await sleep(retryMs, late);
      this.want(this.#wanted, this.#onCame);
      await this.#asking;
    }
  }

  /** The keys whose secrets the disk has to keep. */
  kept(): SealedKey[] {
    return Array.from(this.#wanted.keys(), (publicKey) => ({ publicKey }));
  }

  #forget(publicKey: string): void {
    this.#secrets.delete(publicKey);
    this.#renewable.delete(publicKey);
  }

  #set(publicKey: string, of: VpnKeyOf, key: UnsealedKey): void {
    this.#secrets.set(publicKey, key);
    if ('network' in of) this.#renewable.set(publicKey, renewableMs(key.ike.certificate));
  }

  /** Asks for the keys whose certificates are near their ends; `undefined` if there are none. */
  #renew(wanted: ReadonlyMap<string, VpnKeyOf>): Promise<number> | undefined {
    const { nowMs, values, log } = this.#parts;
    const due = [...this.#renewable].filter(([, fromMs]) => fromMs <= nowMs());
    if (due.length === 0) return undefined;
    const asked = due.map(async ([publicKey]): Promise<number> => {
      const of = wanted.get(publicKey);
      this.#renewable.set(publicKey, nowMs() + renewEveryMs);
      if (of === undefined || !('network' in of)) return 0;
      const given = await values.vpnKey(publicKey, { ...of, isRenewal: true });
      if (given.kind === 'missing' || isDeepStrictEqual(given.key, this.#secrets.get(publicKey))) return 0;
      log.info('certificate_renewed', { network: of.network });
      this.#set(publicKey, of, given.key);
      return 1;
    });
    return Promise.all(asked).then((came) => came.reduce((sum, one) => sum + one, 0));
  }

  async #ask(lacking: readonly (readonly [string, VpnKeyOf])[]): Promise<number> {
    let came = 0;
    let why: string | undefined;
    let isUnanswered = false;
    await Promise.all(
      lacking.map(async ([publicKey, of]) => {
        const given = await this.#parts.values.vpnKey(publicKey, of);
        if (given.kind === 'missing') {
          why = given.why;
          isUnanswered ||= !given.isFinal;
          this.#parts.log.debug('vpn_key_missing', { ...of, why });
        } else if (!isDeepStrictEqual(given.key, this.#secrets.get(publicKey))) {
          this.#set(publicKey, of, given.key);
          came++;
        }
      }),
    );
    [this.#why, this.#isUnanswered] = [why, isUnanswered];
    return came;
  }
}

/** A certificate that was replaced still serves until the other one is here. */
const suffices = (held: UnsealedKey | undefined, of: VpnKeyOf): boolean =>
  held !== undefined && (!('certificate' in of) || held.ike.serial === of.certificate);

/**
 * Wall time at which the last part of a certificate's life begins, in which it is renewed; never,
 * if it cannot be read.
 */
function renewableMs(pem: string): number {
  try {
    const { validFrom, validTo } = new X509Certificate(pem);
    const [fromMs, untilMs] = [Date.parse(validFrom), Date.parse(validTo)];
    return untilMs - (untilMs - fromMs) * limits.certificateRenewFraction;
  } catch {
    return Infinity;
  }
}
