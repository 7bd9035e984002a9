/**
 * Trades credentials from before 0.1.0 for bound ones (credentials.ts), and returns to the earlier
 * ones where nothing answers the bound ones.
 */
import type { NatsConnection } from '@nats-io/transport-node';
import { backoffMs, jitter, sleep, type BackoffBounds } from '../../../lib/time/backoff.ts';
import type { Clock } from '../../../lib/time/clock.ts';
import type { Log } from '../../../lib/log.ts';
import { createNotify } from '../../../lib/notify.ts';
import { limits } from '../../../schemas/limits.ts';
import type { Line } from '../line.ts';
import type { Offer } from '../session.ts';
import type { Credentials } from './credentials.ts';

/** How a request for bound credentials ended. `bound`: the next connection uses them. */
export type OfferResult = 'bound' | 'refused' | 'unanswered';

export interface Binding {
  /**
   * At the start of a connection with unbound credentials, asks for bound ones first, for a limited
   * time.
   */
  offerFirst(signal: AbortSignal): Promise<OfferResult>;
  /** Resolves when other credentials need a new connection, or when the signal aborts. */
  watch(nc: Pick<NatsConnection, 'isClosed'>, signal: AbortSignal): Promise<void>;
  /** The control plane does not know this host by the credentials in use. */
  unknown(): void;
}

export interface BindingParts {
  readonly credentials: Credentials;
  /** Asks once for bound credentials; undefined: there was no answer. */
  readonly ask: () => Promise<Offer | undefined>;
  readonly line: Pick<Line, 'close' | 'silentMs'>;
  /** The control plane knows this host. */
  readonly onContact: () => void;
  /** Asks for another session, where there is one. */
  readonly renewSession: () => void;
  readonly syncMs: number;
  readonly retry: BackoffBounds;
  readonly clock: Clock;
  readonly log: Log;
}

export function createBinding(parts: BindingParts): Binding {
  const { credentials, line, clock, log } = parts;
  const unknown = createNotify();
  /**
   * Much less than the shortest STOP_ON_DISCONNECT_MS, so that a trial of credentials stops no
   * container.
   */
  const trialMs = parts.syncMs / 2;
  /** Credentials that worked before get more time: the control plane is more likely to be away. */
  const silenceAllowedMs = (): number => (credentials.isOnTrial() ? trialMs : 2 * parts.syncMs);

  const offer = async (): Promise<OfferResult> => {
    const answer = await parts.ask();
    if (answer === undefined) return 'unanswered';
    // A refusal is no contact: the containers of an unknown host may be placed elsewhere.
    if (answer.isKnown) parts.onContact();
    if (credentials.offered(answer.jwt)) {
      // Later requests use the new credentials.
      line.close();
      return 'bound';
    }
    // A control plane from before 0.1.0 has started another session for that hello.
    if (answer.isKnown) parts.renewSession();
    return 'refused';
  };

  return {
    offerFirst: async (signal) => {
      const untilMs = clock.monotonicMs() + trialMs;
      for (let attempt = 0; credentials.askBoundInMs() === 0 && !signal.aborted; attempt++) {
        const result = await offer();
        if (result !== 'unanswered' || clock.monotonicMs() >= untilMs) return result;
        await sleep(jitter(backoffMs(attempt, parts.retry)), signal);
      }
      return 'refused';
    },

    watch: async (nc, signal) => {
      for (let unanswered = 0; !signal.aborted;) {
        // With bound credentials and no others, there is nothing to ask for or to return to.
        const isSettled = credentials.askBoundInMs() === undefined && !credentials.hasFallback();
        await sleep(isSettled ? trialMs : Math.min(limits.natsSilenceLookMs, trialMs), signal);
        const askInMs = credentials.askBoundInMs();
        if (askInMs !== undefined) {
          await unknown.wait(askInMs + jitter(backoffMs(unanswered, parts.retry)), signal);
          const result = signal.aborted ? 'refused' : await offer();
          if (result === 'bound') return;
          unanswered = result === 'unanswered' ? unanswered + 1 : 0;
        } else if (credentials.hasFallback() && !nc.isClosed() && line.silentMs() >= silenceAllowedMs()) {
          log.error('bound_credentials_unanswered', { silentMs: Math.round(line.silentMs()) });
          line.close();
          credentials.fallBack();
          return;
        }
      }
    },

    unknown: () => unknown.notify(),
  };
}
