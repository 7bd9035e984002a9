/**
 * Renews credentials that have expired, as after a month without the control plane: NATS refuses
 * this host, so the agent asks a gateway for others, signed by its enrolled key. It asks ever more
 * rarely while the gateway refuses, as it does for a host that was removed.
 */
import { randomBytes } from 'node:crypto';
import type { Clock } from '../../../lib/time/clock.ts';
import type { Log } from '../../../lib/log.ts';
import { createNotify } from '../../../lib/notify.ts';
import { renewalText } from '../../../lib/nats/renewal.ts';
import { quickPair } from '../../../lib/nats/quick-pair.ts';
import { backoffMs, jitter, sleep, type BackoffBounds } from '../../../lib/time/backoff.ts';
import { minutes, seconds } from '../../../schemas/limits/units.ts';
import type { Credentials } from './credentials.ts';
import { decodeEnrolled, post, type Identity } from './identity.ts';

/** The wait for the gateway's answer to a renewal. */
const renewTimeoutMs = 10 * seconds;

/** The longest wait of an agent that the gateway refuses new credentials. */
const renewRefusedMaxMs = 5 * minutes;

export interface Renewal {
  run(signal: AbortSignal): Promise<void>;
  /** A NATS server refuses the credentials. */
  refused(): void;
  /** The control plane answers this host: its credentials are valid. */
  accepted(): void;
}

interface RenewalParts {
  readonly gatewayUrl: string;
  readonly identity: Pick<Identity, 'host' | 'cluster'>;
  readonly seed: Uint8Array;
  readonly credentials: Pick<Credentials, 'expiryMs' | 'renewed' | 'checkEveryMs'>;
  /** The pauses while the gateway is away. */
  readonly backoff: BackoffBounds;
  readonly clock: Clock;
  readonly log: Log;
}

type Answer =
  | { readonly kind: 'renewed'; readonly identity: Identity }
  /** An operator has to act. */
  | { readonly kind: 'refused'; readonly reason: string }
  | { readonly kind: 'away'; readonly reason: string };

export function createRenewal(parts: RenewalParts): Renewal {
  const { credentials, backoff, clock, log } = parts;
  const news = createNotify();
  let isRefused = false;
  let attempt = 0;
  let said: string | undefined;

  const leftMs = (): number => (credentials.expiryMs() ?? Infinity) - clock.nowMs();
  const isDue = (): boolean => isRefused || leftMs() <= 0;
  const untilDueMs = (): number => Math.max(1, Math.min(leftMs(), credentials.checkEveryMs));

  /** Logs one line for each answer that differs from the last. */
  const say = (reason: string, kind: string): void => {
    if (reason !== said) log.warn('credentials_renew_failed', { reason, kind, url: parts.gatewayUrl });
    said = reason;
  };

  return {
    run: async (signal) => {
      while (!signal.aborted) {
        if (!isDue()) {
          await news.wait(untilDueMs(), signal);
          continue;
        }
        const answer = await ask(parts, signal);
        if (signal.aborted) return;
        if (answer.kind === 'renewed') {
          isRefused = false;
          said = undefined;
          credentials.renewed(answer.identity.jwt);
        } else {
          say(answer.reason, answer.kind);
        }
        const maxMs = answer.kind === 'away' ? backoff.maxMs : Math.max(backoff.maxMs, renewRefusedMaxMs);
        // Also after success: a server that refuses what the gateway gives is not asked for more.
        await sleep(jitter(backoffMs(attempt++, { minMs: backoff.minMs, maxMs })), signal);
      }
    },
    refused: () => {
      isRefused = true;
      news.notify();
    },
    accepted: () => {
      isRefused = false;
      attempt = 0;
    },
  };
}

async function ask({ gatewayUrl, identity, seed, clock }: RenewalParts, signal: AbortSignal): Promise<Answer> {
  const pair = quickPair(seed);
  const signed = {
    host_key: identity.host,
    public_key: pair.getPublicKey(),
    at: new Date(clock.nowMs()).toISOString(),
    nonce: randomBytes(16).toString('base64url'),
  };
  const signature = Buffer.from(pair.sign(renewalText(signed))).toString('base64url');
  try {
    const url = new URL('/api/v2/hosts/renew', gatewayUrl);
    const { status, body } = await post(url, { ...signed, signature }, signal, renewTimeoutMs);
    if (status === 200) return given(decodeEnrolled(body).data, identity);
    if (status === 401) return { kind: 'refused', reason: refusal };
    const isAway = status >= 500 || status === 429;
    return { kind: isAway ? 'away' : 'refused', reason: `the gateway answers ${status}` };
  } catch (error) {
    const { cause, message } = error as Error;
    return { kind: 'away', reason: cause instanceof Error && cause.message !== '' ? cause.message : message };
  }
}

const given = (identity: Identity, { host, cluster }: RenewalParts['identity']): Answer =>
  identity.host === host && identity.cluster === cluster
    ? { kind: 'renewed', identity }
    : { kind: 'refused', reason: 'another cluster answers at LONGSHORE_URL: correct it' };

const refusal =
  'the gateway refuses the key of this host (401): the host was removed or is fenced, another key was enrolled for it, ' +
  'an operator has set renew_expired to false, or the clock of this machine is more than a minute wrong. Set the ' +
  'clock, or make a new join token and give it to host-agent join';
