/**
 * The dials of a connection to NATS servers: which server is next, and how long to wait before it.
 * Pure, but for the clock and chance that are passed in.
 */
import type { ReconnectToServerHandler } from '@nats-io/transport-node';
import { limits } from '../../schemas/limits.ts';
import { backoffMs, jitter } from '../time/backoff.ts';
import { seconds } from '../../schemas/limits/units.ts';

/** After a connection that lasted so long, the first dial is quick again. */
export const natsSettledMs = 5 * seconds;

/** The wait between two dials of a server: it doubles while none connects. */
const natsDialMinMs = 250;
const natsDialMaxMs = 5000;
/** The longest wait of gateways and actors, whose callers wait meanwhile. */
const natsDialUrgentMaxMs = 500;

export interface DialsOptions {
  /** Callers wait for this program's answers. */
  readonly isUrgent: boolean;
  /** Called for each dial after which a server refused the credentials. */
  readonly onRefused?: () => void;
  /** A clock for waits, which never steps. */
  readonly nowMs?: () => number;
  readonly random?: () => number;
}

export class Dials {
  readonly #options: DialsOptions;
  readonly #nowMs: () => number;
  /** In a row, without a connection that lasted. */
  #failed = 0;
  #refused = 0;
  #waitMs: number = natsDialMinMs;
  /** Verdict of the server on the credentials in this dial. */
  #verdict: 'none' | 'asked' | 'refused' = 'none';
  #hasConnected = false;
  /** Of the connection that is up. */
  #connectedAtMs: number | undefined;
  #left: { readonly server: string; dials: number } | undefined;

  constructor(options: DialsOptions) {
    this.#options = options;
    this.#nowMs = options.nowMs ?? (() => performance.now());
  }

  /** Dial other servers first; after a vain round of the list, any server is better than none. */
  avoid(server: string): void {
    this.#left = { server, dials: 0 };
  }

  /**
   * Chooses the server to dial next; called once before each dial. nats.js goes round its list, but
   * the first reconnect may reach the very server that was left (seen with 3.4), because that one
   * still accepts connections.
   */
  readonly next: ReconnectToServerHandler = (servers) => {
    this.#begin(servers.length);
    if (this.#left === undefined || this.#left.dials++ >= servers.length) return null;
    const { server } = this.#left;
    return servers.find(({ listen }) => listen !== server) ?? null;
  };

  /**
   * The pause before a server is dialled again, in milliseconds. It stays the same until the next
   * dial, because nats.js asks several times.
   */
  readonly waitMs = (): number => (this.#hasSettled() ? natsDialMinMs : this.#waitMs);

  /** The server asks for the credentials. */
  asked(): void {
    if (this.#verdict === 'none') this.#verdict = 'asked';
  }

  refused(): void {
    this.#verdict = 'refused';
  }

  connected(): void {
    this.#left = undefined;
    this.#verdict = 'none';
    this.#hasConnected = true;
    this.#connectedAtMs = this.#nowMs();
  }

  /** A connection that a server ends at once counts as a dial in vain. */
  #hasSettled(): boolean {
    return this.#connectedAtMs !== undefined && this.#nowMs() - this.#connectedAtMs >= natsSettledMs;
  }

  #begin(servers: number): void {
    const { isUrgent, onRefused, random } = this.#options;
    if (this.#hasSettled()) this.#failed = this.#refused = 0;
    // Before the first connection nats.js does not say why a dial failed.
    const isRefused = this.#verdict === 'refused' || (this.#verdict === 'asked' && !this.#hasConnected);
    if (isRefused) {
      this.#refused++;
      onRefused?.();
    } else if (this.#connectedAtMs === undefined) {
      // A server that is away says nothing about the credentials.
      this.#refused = 0;
    }
    this.#verdict = 'none';
    this.#connectedAtMs = undefined;
    const round = Math.floor(this.#failed++ / Math.max(1, servers));
    const maxMs = isUrgent ? natsDialUrgentMaxMs : natsDialMaxMs;
    const ms =
      this.#refused > 0
        ? backoffMs(this.#refused - 1, { minMs: natsDialMinMs, maxMs: limits.natsRefusedMaxMs })
        : backoffMs(round, { minMs: natsDialMinMs, maxMs });
    this.#waitMs = jitter(ms, random);
  }
}
