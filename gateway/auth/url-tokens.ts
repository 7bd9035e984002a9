/**
 * Tokens in the query of a URL, for phones and browsers without a session: a download token opens
 * the files of one peer, a PAC token its proxy auto-config. A token names the partition whose owner
 * checks it. The answer does not say why a token is refused (unknown, expired, revoked, its peer
 * disabled).
 */
import { LRUCache } from 'lru-cache';
import { limits } from '../../schemas/limits.ts';
import type { TokenScope } from '../../schemas/api/peer.ts';
import type { Origin } from '../../schemas/wire/asks.ts';
import type { Outcome, Question } from '../../lib/rpc/partition-client.ts';
import type { RequestHead } from '../http/engine/engine.ts';
import { hashOfToken, parseToken } from './random-tokens.ts';
import { failure } from '../http/respond.ts';
import { credentialsOf } from './credentials.ts';
import { unauthenticated, type Admission, type FailureKind, type Gate } from './gate.ts';
import { decodeAnswer } from '../../lib/rpc/decode.ts';

export interface UrlTokensOptions {
  readonly gate: Pick<Gate, 'admit' | 'countFailure' | 'limitedByFailures' | 'limitedByTenant'>;
  readonly ask: (question: Question, deadlineMs: number) => Promise<Outcome>;
  /** Undefined until the cluster is known. */
  readonly partitions: () => number | undefined;
  /** Counts a refused request for a metric; `reason` is the kind of its credentials. */
  readonly counted: (route: string, reason: 'none' | 'token' | 'session') => void;
}

/** The content of a token's text. */
interface UrlToken {
  readonly scope: TokenScope;
  readonly partition: number;
  readonly hash: string;
}

/** The parts of a request that an admission needs besides its head. */
export interface UrlTokenRequest {
  readonly route: string;
  readonly origin: Origin;
  readonly deadlineMs: number;
}

export class UrlTokens {
  readonly #options: UrlTokensOptions;
  /** Hashes of tokens that their owner has accepted at some time. */
  readonly #grantedBefore = new LRUCache<string, true>({ max: limits.tokenCacheEntries });

  constructor(options: UrlTokensOptions) {
    this.#options = options;
  }

  /**
   * If the URL has a token, only that counts; without one, a tenant's session opens its peers'
   * files.
   */
  async admit(head: RequestHead, access: 'download' | 'pac', request: UrlTokenRequest): Promise<Admission> {
    const { gate, counted } = this.#options;
    const text = new URLSearchParams(head.query).get('token');
    if (text !== null && text !== '') return this.#byToken(head, text, access, request);
    if (access === 'pac') {
      counted(request.route, 'none');
      return unauthenticated;
    }
    const admission = await gate.admit(head);
    if (admission === unauthenticated) {
      counted(request.route, credentialsOf(head.headers).kind === 'none' ? 'none' : 'session');
    }
    return admission;
  }

  /**
   * A text that cannot be a token is refused and not counted: it costs nothing. A wrong token costs
   * its owner an ask, so an address that sends many is limited. A token that was valid before has a
   * budget of its own.
   */
  #byToken(
    head: RequestHead,
    text: string,
    scope: TokenScope,
    request: UrlTokenRequest,
  ): Admission | Promise<Admission> {
    const { gate, partitions } = this.#options;
    const token = parseToken(text);
    if (token?.kind !== scope) return this.#refuse(request);
    const count = partitions();
    if (count === undefined) return { kind: 'refused', result: failure('unavailable') };
    if (token.partition >= count) return this.#refuse(request);
    const hash = hashOfToken(text);
    const failures = this.#grantedBefore.get(hash) === undefined ? 'url token' : (`url token ${hash}` as const);
    return (
      gate.limitedByFailures(head, failures) ??
      this.#resolve(head, { scope, partition: token.partition, hash }, failures, request)
    );
  }

  async #resolve(
    head: RequestHead,
    token: UrlToken,
    failures: FailureKind,
    request: UrlTokenRequest,
  ): Promise<Admission> {
    const { gate, ask } = this.#options;
    const { scope, partition, hash } = token;
    const question = { type: 'token.resolve', partition, hash, ...request.origin } as const;
    const { code, body } = await ask(question, request.deadlineMs);
    if (code !== 'ok' && code !== 'unauthenticated') return { kind: 'refused', result: { code, body } };
    const grant = code === 'ok' ? decodeAnswer('token.resolve', body).data : undefined;
    if (grant?.scope !== scope) {
      gate.countFailure(head, failures);
      return this.#refuse(request);
    }
    this.#grantedBefore.set(hash, true);
    return gate.limitedByTenant(grant.tenant) ?? { kind: 'granted', grant: { ...grant, tokenHash: hash } };
  }

  #refuse({ route }: UrlTokenRequest): Admission {
    this.#options.counted(route, 'token');
    return unauthenticated;
  }
}
