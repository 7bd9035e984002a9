/**
 * Tokens in the query of a URL, for phones and browsers that have no session: a download token
 * opens the files of one peer, a PAC token its proxy auto-config. A token names the partition
 * that can judge it. Why a token is refused (unknown, expired, revoked, its peer disabled) is not
 * said.
 */
import { LRUCache } from 'lru-cache';
import { limits } from '../../schemas/limits.ts';
import type { TokenScope } from '../../schemas/api/peer.ts';
import type { Outcome, Question } from '../../lib/rpc/partition-client.ts';
import type { RequestHead } from '../http/engine/engine.ts';
import { hashOfToken, parseToken } from '../vpn/pki/secrets.ts';
import { failure } from '../http/respond.ts';
import { credentialsOf } from './credentials.ts';
import { unauthenticated, type Admission, type FailureKind, type Gate } from './gate.ts';
import { decodeAnswer } from '../../lib/rpc/decode.ts';

export interface UrlTokensOptions {
  readonly gate: Pick<Gate, 'admit' | 'countFailure' | 'limitedByFailures' | 'limitedByTenant'>;
  readonly ask: (question: Question, deadlineMs: number) => Promise<Outcome>;
  /** Undefined until the cluster is known. */
  readonly partitions: () => number | undefined;
  /** For a metric: the reason is of the credentials' kind, never more. */
  readonly counted: (route: string, reason: 'none' | 'token' | 'session') => void;
}

/** A token as far as it tells without its owner. */
interface UrlToken {
  readonly scope: TokenScope;
  readonly partition: number;
  readonly hash: string;
}

/** Of a request, what an admission needs beside its head. */
export interface Ride {
  readonly route: string;
  readonly requestId: string;
  readonly deadlineMs: number;
}

export class UrlTokens {
  readonly #options: UrlTokensOptions;
  /** Hashes of tokens that were good when they were last asked about, or some time before. */
  readonly #grantedBefore = new LRUCache<string, true>({ max: limits.tokenCacheEntries });

  constructor(options: UrlTokensOptions) {
    this.#options = options;
  }

  /**
   * A token in the URL decides alone; without one, the files of a peer open to its tenant's
   * session.
   */
  async admit(head: RequestHead, access: 'download' | 'pac', ride: Ride): Promise<Admission> {
    const { gate, counted } = this.#options;
    const text = new URLSearchParams(head.query).get('token');
    if (text !== null && text !== '') return this.#byToken(head, text, access, ride);
    if (access === 'pac') {
      counted(ride.route, 'none');
      return unauthenticated;
    }
    const admission = await gate.admit(head);
    if (admission === unauthenticated) {
      counted(ride.route, credentialsOf(head.headers).kind === 'none' ? 'none' : 'session');
    }
    return admission;
  }

  /**
   * A text that can't be one of our tokens is refused without a count: its form is public. A wrong
   * token costs its owner a question, so an address that sends many is limited; a token that was
   * valid here before has a budget of its own.
   */
  #byToken(head: RequestHead, text: string, scope: TokenScope, ride: Ride): Admission | Promise<Admission> {
    const { gate, partitions } = this.#options;
    const token = parseToken(text);
    if (token?.scope !== scope) return this.#refuse(ride);
    const count = partitions();
    if (count === undefined) return { kind: 'refused', result: failure('unavailable') };
    if (token.partition >= count) return this.#refuse(ride);
    const hash = hashOfToken(text);
    const failures = this.#grantedBefore.get(hash) === undefined ? 'url token' : (`url token ${hash}` as const);
    return (
      gate.limitedByFailures(head, failures) ??
      this.#resolve(head, { scope, partition: token.partition, hash }, failures, ride)
    );
  }

  async #resolve(head: RequestHead, token: UrlToken, failures: FailureKind, ride: Ride): Promise<Admission> {
    const { gate, ask } = this.#options;
    const { scope, partition, hash } = token;
    const question = { type: 'token.resolve', partition, hash, rid: ride.requestId } as const;
    const { code, body } = await ask(question, ride.deadlineMs);
    if (code !== 'ok' && code !== 'unauthenticated') return { kind: 'refused', result: { code, body } };
    const grant = code === 'ok' ? decodeAnswer('token.resolve', body).data : undefined;
    if (grant?.scope !== scope) {
      gate.countFailure(head, failures);
      return this.#refuse(ride);
    }
    this.#grantedBefore.set(hash, true);
    return gate.limitedByTenant(grant.tenant) ?? { kind: 'granted', grant: { ...grant, tokenHash: hash } };
  }

  #refuse({ route }: Ride): Admission {
    this.#options.counted(route, 'token');
    return unauthenticated;
  }
}
