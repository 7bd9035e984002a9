/** Sessions of people: tokens of the cluster's own, begun and ended. */
import { createHash, randomUUID } from 'node:crypto';
import type { Author } from '../../schemas/api/audit/line.ts';
import { sessionIdOf, twinnedSessionIdOf } from '../../schemas/api/keys/session-id.ts';
import type { TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { wholeSeconds } from '../../schemas/quantity.ts';
import { causeOf } from '../audit/cause.ts';
import type { Identity } from '../auth/claims.ts';
import type { Gate } from '../auth/gate.ts';
import { succeeded, written, type Call, type Writer } from '../call.ts';
import type { AskOwner } from '../../lib/rpc/partition-client.ts';
import type { Clock } from '../../lib/time/clock.ts';
import type { Log } from '../../lib/log.ts';
import type { AuditNotes } from '../audit/notes.ts';
import type { Revocation } from '../../schemas/api/tenant.ts';
import { conflict, failure, type Result } from '../http/respond.ts';
import type { SigningKeys } from '../keys/signing-keys.ts';
import { signedOutEvent, unknownOutcomes } from '../audit/security-events.ts';
import { revocationOf } from '../auth/revocations.ts';
import type { Verifier } from '../auth/verifier.ts';
import type { Grant } from './mapping.ts';

export interface Session {
  readonly token: string;
  readonly tenant: TenantId;
  readonly expiresAtMs: number;
}

/** The proof of a person's identity. */
export interface Proof {
  readonly by: 'browser' | 'device' | 'link';
  /** When the provider said so. A revocation that came later ends the session. */
  readonly atMs: number;
  /** Address at which a sign-in by device was begun, perhaps by somebody else. */
  readonly from?: string | undefined;
}

/** A choice of one of several tenants, which is good for one session. */
export interface Choice {
  readonly subject: string;
  readonly grants: readonly Grant[];
  readonly untilMs: number;
}

export interface SessionsOptions extends Writer {
  readonly ask: AskOwner;
  readonly announceRevocation: (revocation: Revocation) => void;
  /** Tokens that live longer are refused. */
  readonly tokenLifeMaxMs: number;
  readonly notes: Pick<AuditNotes, 'note'>;
  readonly clock: Pick<Clock, 'nowMs'>;
  readonly log: Log;
  readonly signingKeys: SigningKeys;
  readonly gate: Pick<Gate, 'addressOf'>;
  readonly verifier: Pick<Verifier, 'stillGood'>;
  readonly lifeMs: number;
  /** The same for a command line. */
  readonly deviceLifeMs: number;
  /** True if a session in a browser has a twin of its cookie. */
  readonly hasTwins: boolean;
}

const notAudited = failure(
  'unavailable',
  'nobody was signed in, because the line in the audit could not be written; sign in again in a moment',
);

const revokedMeanwhile = 'your tokens were revoked after this sign-in; sign in again, or ask the operator why';
const chosenBefore = conflict('key_used', 'a tenant was chosen at this sign-in already; sign in again');
const noRoom = conflict(
  'too_many',
  'the server keeps no more choices of these tenants just now; open /login?tenant=NAME with the name of one',
);

export class PersonSessions {
  readonly #options: SessionsOptions;

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  async begin(call: Call, subject: string, { tenant, scopes }: Grant, proof: Proof): Promise<Result | Session> {
    const { by, atMs, from } = proof;
    const way = { by, ...(from === undefined ? {} : { from }) };
    if (subject === '' || subject.length > limits.subjectChars) {
      return this.refusePerson(
        call,
        null,
        'subject',
        'the identity provider names you in a way that no token can',
        way,
      );
    }
    const { signingKeys, verifier, lifeMs, deviceLifeMs, hasTwins, log } = this.#options;
    // That of a command line counts in no cookie: nobody can plant one in a browser.
    const id = (by === 'device' || hasTwins ? twinnedSessionIdOf : sessionIdOf)(randomUUID());
    const issuedAtS = wholeSeconds(atMs);
    const expiresAtS = issuedAtS + wholeSeconds(by === 'device' ? deviceLifeMs : lifeMs);
    const author = { tenant, subject, token: id };
    if (!verifier.stillGood({ tenant, subject, scopes, tokenId: id, tokenName: id, issuedAtS, expiresAtS })) {
      await this.#note(call, tenant, author, 'forbidden', way);
      return this.refuse(call, 'revoked', revokedMeanwhile);
    }
    const { origin, deadlineMs } = call;
    const signed = await signingKeys.sign(
      { id, tenant, subject, scopes, issuedAtS, expiresAtS },
      { origin, deadlineMs },
    );
    if ('code' in signed) return signed;
    if (!(await this.#note(call, tenant, author, 'done', way))) return notAudited;
    log.info('signed_in', { tenant, subject, token: id, ...way, ...this.#about(call) });
    return { token: signed.token, tenant, expiresAtMs: expiresAtS * 1000 };
  }

  /**
   * Uses a choice up, at whichever gateway it comes; a refusal if it was used. The owner of the
   * first of its tenants remembers it as a revoked token until it ends by itself.
   */
  async take(call: Call, { subject, grants, untilMs }: Choice): Promise<Result | undefined> {
    const { ask, clock, tokenLifeMaxMs } = this.#options;
    const [first] = grants;
    if (first === undefined) return chosenBefore;
    const { tenant } = first;
    const jti = `choice.${createHash('sha256').update(`${untilMs} ${subject}`).digest('base64url')}`;
    const times = { nowMs: clock.nowMs(), tokenLifeMaxMs };
    const revocation = revocationOf(tenant, { jti, exp: Math.ceil(untilMs / 1000) }, times);
    const question = {
      type: 'tenant.revoke',
      tenant,
      revocation,
      once: true,
      ...written(this.#options, call),
    } as const;
    const outcome = await ask('write', question, call.deadlineMs);
    if (succeeded(outcome)) return undefined;
    if (outcome.code === 'precondition_failed') return chosenBefore;
    return outcome.code === 'conflict' ? noRoom : outcome;
  }

  /** `undefined` if every gateway refuses its token within a second. */
  async end(call: Call, identity: Identity, tokenId: string): Promise<Result | undefined> {
    const { ask, announceRevocation, clock, tokenLifeMaxMs, log } = this.#options;
    const { tenant, subject, expiresAtS } = identity;
    const match = { jti: tokenId, exp: expiresAtS };
    const revocation = revocationOf(tenant, match, { nowMs: clock.nowMs(), tokenLifeMaxMs });
    const cause = causeOf('sign_out', {}, identity, this.#about(call).address);
    const write = written(this.#options, { origin: call.origin, cause });
    const question = { type: 'tenant.revoke', tenant, revocation, ...write } as const;
    const outcome = await ask('write', question, call.deadlineMs);
    const isDone = succeeded(outcome);
    if (isDone || unknownOutcomes.has(outcome.code)) {
      const told = { tenant, subject, match, outcome: isDone ? 'done' : 'unknown', ...this.#about(call) };
      log.info(signedOutEvent, told);
    }
    if (!isDone) return outcome;
    // After the commit (A3): a revocation that is announced but not stored could be lost.
    announceRevocation(revocation);
    return undefined;
  }

  /** @param why for the operator's log; `message` is for the person */
  refuse(call: Call, why: string, message: string): Result {
    this.#options.log.warn('sign_in_refused', { why, ...this.#about(call) });
    return failure('forbidden', message);
  }

  /** Of a person whom the provider knows: the operators' audit has it, too. */
  async refusePerson(
    call: Call,
    subject: string | null,
    why: string,
    message: string,
    way: Omit<Proof, 'atMs'>,
  ): Promise<Result> {
    const who = { tenant: null, subject: subject?.slice(0, limits.auditTextChars) ?? null, token: null };
    await this.#note(call, null, who, 'forbidden', way);
    return this.refuse(call, why, message);
  }

  /** A line of the audit; false if it was not committed. */
  #note(
    call: Call,
    tenant: TenantId | null,
    who: Omit<Author, 'address'>,
    outcome: string,
    { by, from }: Omit<Proof, 'atMs'>,
  ): Promise<boolean> {
    const author = { ...who, address: this.addressOf(call) };
    const target = { by, ...(from === undefined ? {} : { from: from.slice(0, limits.auditTextChars) }) };
    return this.#options.notes.note(tenant, { by: author, action: 'sign_in', target, outcome, detail: null }, call);
  }

  /** The address of the client, as this gateway sees it. */
  addressOf({ exchange }: Call): string {
    return this.#options.gate.addressOf(exchange.head);
  }

  #about(call: Call) {
    return { requestId: call.requestId, address: this.addressOf(call) };
  }
}
