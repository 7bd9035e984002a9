/** Sessions of people: tokens of the cluster's own, begun and ended. */
import { randomUUID } from 'node:crypto';
import type { Author } from '../../schemas/api/audit/line.ts';
import { sessionIdOf } from '../../schemas/api/keys/session-id.ts';
import type { TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import { wholeSeconds } from '../../schemas/quantity.ts';
import { causeOf } from '../audit/cause.ts';
import type { Identity } from '../auth/claims.ts';
import type { Gate } from '../auth/gate.ts';
import { succeeded, written, type Call, type Services } from '../http/call.ts';
import { failure, type Result } from '../http/respond.ts';
import type { SigningKeys } from '../keys/signing-keys.ts';
import { signedOutEvent, unknownOutcomes } from '../operator/security-events.ts';
import { revocationOf } from '../operator/tenants.ts';
import type { Grant } from './mapping.ts';

export interface Session {
  readonly token: string;
  readonly tenant: TenantId;
  readonly expiresAtMs: number;
}

export interface SessionsOptions {
  readonly services: Services;
  readonly signingKeys: SigningKeys;
  readonly gate: Pick<Gate, 'addressOf'>;
  readonly lifeMs: number;
}

const notAudited = failure(
  'unavailable',
  'nobody was signed in, because the line in the audit could not be written; sign in again in a moment',
);

export class PersonSessions {
  readonly #options: SessionsOptions;

  constructor(options: SessionsOptions) {
    this.#options = options;
  }

  /** @param by how the person proved who they are */
  async begin(call: Call, subject: string, { tenant, scopes }: Grant, by: string): Promise<Result | Session> {
    if (subject === '' || subject.length > limits.subjectChars) {
      return this.refusePerson(call, null, 'subject', 'the identity provider names you in a way that no token can');
    }
    const { services, signingKeys, lifeMs } = this.#options;
    const id = sessionIdOf(randomUUID());
    const issuedAtS = wholeSeconds(services.clock.nowMs());
    const expiresAtS = issuedAtS + wholeSeconds(lifeMs);
    const { origin, deadlineMs } = call;
    const signed = await signingKeys.sign(
      { id, tenant, subject, scopes, issuedAtS, expiresAtS },
      { origin, deadlineMs },
    );
    if ('code' in signed) return signed;
    const author = { tenant, subject, token: id };
    if (!(await this.#note(call, tenant, author, 'done'))) return notAudited;
    services.log.info('signed_in', { tenant, subject, token: id, by, ...this.#about(call) });
    return { token: signed.token, tenant, expiresAtMs: expiresAtS * 1000 };
  }

  /** Undefined: every gateway refuses its token within a second. */
  async end(call: Call, identity: Identity, tokenId: string): Promise<Result | undefined> {
    const { services } = this.#options;
    const { tenant, subject, expiresAtS } = identity;
    const { clock, tokenLifeMaxMs } = services;
    const match = { jti: tokenId, exp: expiresAtS };
    const revocation = revocationOf(tenant, match, { nowMs: clock.nowMs(), tokenLifeMaxMs });
    const cause = causeOf('sign_out', {}, identity, this.#about(call).address);
    const write = written(services, { origin: call.origin, cause });
    const question = { type: 'tenant.revoke', tenant, revocation, ...write } as const;
    const outcome = await services.ask('write', question, call.deadlineMs);
    const isDone = succeeded(outcome);
    if (isDone || unknownOutcomes.has(outcome.code)) {
      const told = { tenant, subject, match, outcome: isDone ? 'done' : 'unknown', ...this.#about(call) };
      services.log.info(signedOutEvent, told);
    }
    if (!isDone) return outcome;
    // After the commit (A3): a revocation that is announced but not stored could be lost.
    services.announceRevocation(revocation);
    return undefined;
  }

  /** @param why for the operator's log; `message` is for the person */
  refuse(call: Call, why: string, message: string): Result {
    this.#options.services.log.warn('sign_in_refused', { why, ...this.#about(call) });
    return failure('forbidden', message);
  }

  /** Of a person whom the provider knows: the operators' audit has it, too. */
  async refusePerson(call: Call, subject: string | null, why: string, message: string): Promise<Result> {
    await this.#note(
      call,
      null,
      { tenant: null, subject: subject?.slice(0, limits.auditTextChars) ?? null, token: null },
      'forbidden',
    );
    return this.refuse(call, why, message);
  }

  /** A line of the audit; false if it was not committed. */
  #note(call: Call, tenant: TenantId | null, who: Omit<Author, 'address'>, outcome: string): Promise<boolean> {
    const by = { ...who, address: this.#about(call).address };
    return this.#options.services.notes.note(
      tenant,
      { by, action: 'sign_in', target: {}, outcome, detail: null },
      call,
    );
  }

  #about({ requestId, exchange }: Call) {
    return { requestId, address: this.#options.gate.addressOf(exchange.head) };
  }
}
