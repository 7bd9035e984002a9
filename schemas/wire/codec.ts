/**
 * Gateway → owner of a partition: a batch of asks, a line of JSON each; the answers come in one or
 * more parts, a line each: `<index>\t<outcome code>\t<body>`, in any order, the body being the JSON
 * of the HTTP response (JSON.stringify never writes a raw newline or tab). A batch is answered when
 * every index is. Both ends are ours and of one version, so an ask is not checked again field by
 * field.
 */
import { isOutcomeCode, type OutcomeCode } from '../errors.ts';
import type { Ask } from './asks.ts';

/**
 * In place of an outcome, by a subscriber that does not own the partition, or has just given it
 * away: ask again, a write under the same operation id. Another subscriber may have executed the
 * ask.
 */
export const notOwner = 'not_owner';
export type AnswerCode = OutcomeCode | typeof notOwner;

export interface Answer {
  readonly index: number;
  readonly code: AnswerCode;
  /** JSON of the HTTP response's body; empty for none. */
  readonly body: string;
}

export const encodeAsks = (asks: readonly string[]): string => asks.join('\n');
export const encodeAsk = (ask: Ask): string => JSON.stringify(ask);
export const decodeAsks = (payload: string): Ask[] => payload.split('\n').map((line) => JSON.parse(line) as Ask);

export const encodeAnswer = (answer: Answer): string => `${answer.index}\t${answer.code}\t${answer.body}`;

const isAnswerCode = (code: string): code is AnswerCode => code === notOwner || isOutcomeCode(code);

/** Throws where the payload is none of ours. */
export function decodeAnswers(payload: string): Answer[] {
  return payload.split('\n').map((line) => {
    const code = line.indexOf('\t');
    const body = line.indexOf('\t', code + 1);
    const index = Number(line.slice(0, code));
    const name = line.slice(code + 1, body);
    if (code < 1 || body < 0 || !Number.isInteger(index) || !isAnswerCode(name)) throw new Error('malformed answer');
    return { index, code: name, body: line.slice(body + 1) };
  });
}
