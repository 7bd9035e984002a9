import { messageOf } from '../../lib/error-message.ts';
/** Failures between the agent and the engine, in the kinds that the agent handles differently. */

export type EngineFault =
  /**
   * No connection, or it broke before the answer was whole: whether the engine did the work is
   * unknown.
   */
  | { readonly kind: 'unreachable' }
  /** No answer in time: whether the engine did the work is unknown, and it may yet do it. */
  | { readonly kind: 'deadline'; readonly ms: number }
  /** A pull made no progress, though the engine itself may be well. */
  | { readonly kind: 'stalled'; readonly ms: number }
  /** The caller aborted the call. */
  | { readonly kind: 'aborted' }
  /** The engine answered with an error. */
  | { readonly kind: 'refused'; readonly status: number }
  /** The answer is larger than the agent accepts. */
  | { readonly kind: 'oversized' }
  /** The answer does not follow the engine's API. */
  | { readonly kind: 'malformed' };

export class EngineError extends Error {
  readonly call: string;
  readonly fault: EngineFault;

  constructor(call: string, fault: EngineFault, detail: string, cause?: unknown) {
    super(`${call}: ${detail}`, { cause });
    this.name = 'EngineError';
    this.call = call;
    this.fault = fault;
    this.detail = detail;
  }

  /** The message of the engine, or of the network. */
  readonly detail: string;
}

export const isRefusal = (error: unknown, status: number): boolean =>
  error instanceof EngineError && error.fault.kind === 'refused' && error.fault.status === status;

export const isUnreachable = (error: unknown): boolean =>
  error instanceof EngineError && error.fault.kind === 'unreachable';

export const isOversized = (error: unknown): boolean =>
  error instanceof EngineError && error.fault.kind === 'oversized';

/** The list of containers failed, which affects every container. */
export const isListFailure = (error: unknown): boolean => error instanceof EngineError && error.call === listCall;
export const listCall = 'container list';

/** The engine itself is away or hanging, as opposed to refusing this one call. */
export const isOutage = (error: unknown): boolean =>
  error instanceof EngineError && (error.fault.kind === 'unreachable' || error.fault.kind === 'deadline');

export const detailOf = (error: unknown): string => (error instanceof EngineError ? error.detail : messageOf(error));

export const asEngineError = (call: string, error: unknown): EngineError =>
  error instanceof EngineError ? error : new EngineError(call, { kind: 'unreachable' }, messageOf(error), error);
