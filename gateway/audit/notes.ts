/**
 * Lines of the audit about what no owner decides: refusals of the gateway, sessions, sign-ins. The
 * owner of the tenant commits them, and the answer to the request waits for that.
 */
import type { Clock } from '../../lib/time/clock.ts';
import type { Log } from '../../lib/log.ts';
import { DeadlineError, within } from '../../lib/time/backoff.ts';
import type { AskOwner, Outcome, Question } from '../../lib/rpc/partition-client.ts';
import { isSuccessCode } from '../../schemas/errors.ts';
import type { OperationId, TenantId } from '../../schemas/ids.ts';
import type { Origin } from '../../schemas/wire/asks.ts';
import { limits } from '../../schemas/limits.ts';
import { detailOf, leavesLine, outcomeOf, type Cause, type Note } from '../../schemas/wire/audit.ts';
import type { Identity } from '../auth/claims.ts';
import { failure, type Result } from '../http/respond.ts';

/** The same for the line of the end of a session, which nobody waits for. */
const auditLastNoteMs = 30_000;

export interface AuditNotesOptions {
  readonly ask: AskOwner;
  readonly newOperationId: () => OperationId;
  readonly clock: Pick<Clock, 'monotonicMs'>;
  readonly log: Log;
  /** A line could not be committed; the log has it. */
  readonly onLost: () => void;
}

/** The parts of a request that an audit line has; a `Call` has them. */
export interface AuditedRequest {
  readonly cause?: Cause | undefined;
  readonly identity: Identity | undefined;
  readonly origin: Origin;
  readonly deadlineMs: number;
}

/** The partition whose owner commits lines that concern no tenant. */
const partitionOfOperators = 0;

const notNoted = failure(
  'unavailable',
  'this was done, but its line in the audit could not be written; look at the result, and send the request again',
);

const notBegun = failure('unavailable', 'the audit could not take a line about this; nothing was begun; try again');

/** Too many of these to keep: they cost their sender nothing. */
const isLimited = (code: string): boolean => code === 'rate_limited';

export class AuditNotes {
  readonly #options: AuditNotesOptions;
  /** Requests whose line an owner has committed. */
  readonly #lined = new WeakSet<Cause>();
  readonly #pending = new Set<Promise<unknown>>();

  constructor(options: AuditNotesOptions) {
    this.#options = options;
  }

  /** An owner has answered a question with a cause: it may have left the line of the request. */
  heard(question: Question, { code }: Outcome): void {
    const cause = 'cause' in question ? question.cause : undefined;
    if (cause !== undefined && leavesLine(code, question.type)) this.#lined.add(cause);
  }

  /**
   * The answer to a request, once it has its line. A refusal does not depend on it: without an
   * owner it goes out after a time, and the log has the line.
   */
  async settle(request: AuditedRequest, handled: Result | 'streamed'): Promise<Result | 'streamed'> {
    const { cause, identity } = request;
    if (cause === undefined || identity === undefined || handled === 'streamed') return handled;
    const { code, body } = handled;
    if (this.#lined.has(cause) || !leavesLine(code) || isLimited(code)) return handled;
    const note = { ...cause, outcome: outcomeOf(code), detail: detailOf(code, body) };
    const isNoted = await this.note(identity.tenant, note, request);
    return isNoted || !isSuccessCode(code) ? handled : notNoted;
  }

  /**
   * Commits the line of what begins before its answer is known, and takes up the `Idempotency-Key`
   * of the request with it. What happens later leaves lines of its own.
   * @returns the refusal; `undefined` if it may begin
   */
  async begin(
    tenant: TenantId,
    line: Omit<Note, 'outcome' | 'detail'>,
    cause: Cause,
    { origin, deadlineMs }: AuditedRequest,
  ): Promise<Result | undefined> {
    const untilMs = Math.min(deadlineMs, this.#options.clock.monotonicMs() + limits.auditNoteMs);
    const note = { ...line, outcome: 'done', detail: null } as const;
    const outcome = await this.#write(tenant, note, { ...origin, cause }, untilMs);
    if (isSuccessCode(outcome.code)) {
      this.#lined.add(cause);
      return undefined;
    }
    return outcome.code === 'conflict' || outcome.code === 'rate_limited' ? outcome : notBegun;
  }

  /**
   * Commits a line about a tenant, or, for null, about operators alone; false if it was not
   * committed in time.
   */
  async note(
    tenant: TenantId | null,
    note: Note,
    { origin, deadlineMs }: Pick<AuditedRequest, 'origin' | 'deadlineMs'>,
  ): Promise<boolean> {
    const untilMs = Math.min(deadlineMs, this.#options.clock.monotonicMs() + limits.auditNoteMs);
    return isSuccessCode((await this.#write(tenant, note, origin, untilMs)).code);
  }

  /** The same for a line that nobody waits for: it has more time. */
  noteLater(tenant: TenantId, note: Note, origin: Origin): void {
    const untilMs = this.#options.clock.monotonicMs() + auditLastNoteMs;
    const written = this.#write(tenant, note, origin, untilMs);
    this.#pending.add(written);
    void written.finally(() => this.#pending.delete(written));
  }

  /** Resolves when the lines that nobody waits for are committed, or after this long. */
  async drain(ms: number): Promise<void> {
    try {
      await within(Promise.all(this.#pending), ms, 'lines of the audit');
    } catch (error) {
      if (!(error instanceof DeadlineError)) throw error;
    }
  }

  async #write(
    tenant: TenantId | null,
    note: Note,
    origin: Origin & { readonly cause?: Cause },
    untilMs: number,
  ): Promise<Outcome> {
    const { ask, newOperationId, log, onLost } = this.#options;
    const asker = { notes: [note], ...origin, op: newOperationId() };
    const question: Question =
      tenant === null
        ? { type: 'audit.note_operator', partition: partitionOfOperators, ...asker }
        : { type: 'audit.note', tenant, ...asker };
    const outcome = await ask('write', question, untilMs);
    if (isSuccessCode(outcome.code)) return outcome;
    onLost();
    log.warn('audit_line_lost', { tenant, requestId: origin.rid, code: outcome.code, line: note });
    return outcome;
  }
}
