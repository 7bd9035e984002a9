/** The log line of each request: its route, its caller and its outcome. */
import type { Fields, Log } from '../../lib/log.ts';
import type { Identity, TokenGrant } from '../auth/claims.ts';
import type { Admission } from '../auth/gate.ts';
import { shortHash } from '../auth/verifier.ts';
import type { Exchange } from '../http/engine/engine.ts';

/** The caller of a request with credentials. */
export type Caller = Exclude<Admission, { readonly kind: 'refused' }>;

export const tenantOfCaller = (caller: Caller) =>
  caller.kind === 'admitted' ? caller.identity.tenant : caller.grant.tenant;

export interface Finished {
  readonly requestId: string;
  /** `undefined` if the request is not traced. */
  readonly traceId?: string | undefined;
  readonly route: string;
  readonly caller: Caller | undefined;
  readonly status: number;
  readonly ms: number;
  /** The client's address, as proxies report it. */
  readonly address: string;
  readonly streamed: boolean;
}

export class AccessLog {
  readonly #log: Log;
  /** A verified token is cached, so its caller's fields are encoded as JSON once for many lines. */
  readonly #logs = new WeakMap<Identity | TokenGrant, Log>();

  constructor(log: Log) {
    this.#log = log;
  }

  write(
    { head, aborted }: Exchange,
    { requestId, traceId, route, caller, status, ms, address, streamed }: Finished,
  ): void {
    this.#logOf(caller).info('request', {
      requestId,
      traceId,
      method: head.method,
      route,
      status,
      ms: Math.round(ms * 100) / 100,
      address,
      streamed: streamed || undefined,
      aborted: aborted || undefined,
    });
  }

  #logOf(caller: Caller | undefined): Log {
    if (caller === undefined) return this.#log;
    const who = caller.kind === 'admitted' ? caller.identity : caller.grant;
    const known = this.#logs.get(who);
    if (known !== undefined) return known;
    const own = this.#log.child(callerFields(caller));
    this.#logs.set(who, own);
    return own;
  }
}

/** The caller and the name of its token; never the token itself. */
function callerFields(caller: Caller): Fields {
  switch (caller.kind) {
    case 'admitted': {
      const { tenant, subject, tokenName } = caller.identity;
      return { tenant, subject, token: tokenName };
    }
    case 'granted': {
      const { tenant, peer, tokenHash } = caller.grant;
      return { tenant, peer, token: shortHash(tokenHash) };
    }
  }
}
