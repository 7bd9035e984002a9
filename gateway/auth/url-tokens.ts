/**
 * Tokens in the query of a URL, for phones and browsers that have no session: a download token opens the files of one peer,
 * a PAC token its proxy auto-config. A token says which partition can tell whether it is good; what is wrong with one
 * that is not (unknown, expired, revoked, of a disabled peer) nobody is told.
 */
import type { PeerGrant, TokenScope } from '../../schemas/peer.ts';
import type { Outcome, Question } from '../coalescer.ts';
import type { RequestHead } from '../http/engine.ts';
import { hashOfToken, parseToken } from '../pki/secrets.ts';
import { failure } from '../respond.ts';
import { credentialsOf } from './credentials.ts';
import { unauthenticated, type Admission, type Gate } from './gate.ts';

export interface UrlTokensOptions {
  readonly gate: Gate;
  readonly ask: (question: Question, deadlineMs: number) => Promise<Outcome>;
  /** Undefined until the cluster is known. */
  readonly partitions: () => number | undefined;
  /** For a metric: the reason is of the credentials' kind, never more. */
  readonly counted: (route: string, reason: 'none' | 'token' | 'session') => void;
}

/** Of a request, what an admission needs beside its head. */
export interface Ride {
  readonly route: string;
  readonly requestId: string;
  readonly deadlineMs: number;
}

export class UrlTokens {
  readonly #options: UrlTokensOptions;

  constructor(options: UrlTokensOptions) {
    this.#options = options;
  }

  /** A token in the URL decides alone; without one, the files of a peer open to its tenant's session. */
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

  async #byToken(head: RequestHead, text: string, scope: TokenScope, ride: Ride): Promise<Admission> {
    const { gate, ask, partitions, counted } = this.#options;
    const limited = gate.limitedByFailures(head, 'url token');
    if (limited !== undefined) return limited;
    const count = partitions();
    if (count === undefined) return { kind: 'refused', result: failure('unavailable') };
    const token = parseToken(text);
    // What is no token of ours is asked for all the same, so that it takes as long.
    const partition = token === undefined || token.partition >= count ? 0 : token.partition;
    const tokenHash = hashOfToken(text);
    const { code, body } = await ask(
      { type: 'token.resolve', partition, hash: tokenHash, rid: ride.requestId },
      ride.deadlineMs,
    );
    if (code !== 'ok' && code !== 'unauthenticated') return { kind: 'refused', result: { code, body } };
    const grant = code === 'ok' ? (JSON.parse(body) as { data: PeerGrant }).data : undefined;
    if (grant?.scope !== scope) {
      counted(ride.route, 'token');
      gate.countFailure(head, 'url token');
      return unauthenticated;
    }
    return gate.limitedByTenant(grant.tenant) ?? { kind: 'granted', grant: { ...grant, tokenHash } };
  }
}
