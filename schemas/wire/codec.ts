/**
 * Gateway → owner of partitions: a batch of asks, a line of JSON each; the answers come in one or
 * more parts, a line each: `<index>\t<outcome code>\t<body>`, in any order, the body being the JSON
 * of the HTTP response (JSON.stringify never writes a raw newline or tab). A batch is answered when
 * every index is. Both carry the version of the protocol (version.ts); that of answers has the
 * answering process behind it: `<version> <owner>`.
 */
import { isOutcomeCode, type OutcomeCode } from '../errors.ts';
import type { Question } from './asks.ts';
import { protocolOf, protocolVersion } from './version.ts';

/**
 * Answered instead of an outcome by a subscriber that does not own the partition, or has just
 * handed it over. Ask again, and a write under the same operation id: another subscriber may have
 * executed it.
 */
export const notOwner = 'not_owner';
export type AnswerCode = OutcomeCode | typeof notOwner;

export interface Answer {
  readonly index: number;
  readonly code: AnswerCode;
  /** JSON of the HTTP response's body; empty: no body. */
  readonly body: string;
}

/** At least one ask, each as `encodeAsk` writes it. The first one also has the version. */
export const encodeAsks = ([first = '', ...others]: readonly string[]): string =>
  [`{"protocol":${protocolVersion},${first.slice(1)}`, ...others].join('\n');
/** Appends the budget to the text, which is cheaper than a copy of the ask that has it. */
export const encodeAsk = (question: Question, budgetMs: number): string =>
  `${JSON.stringify(question).slice(0, -1)},"budgetMs":${budgetMs}}`;

/** One line for each ask, for lib/rpc/decode.ts. */
export const linesOf = (payload: string): string[] => payload.split('\n');

/** Number of asks in a batch that this program cannot decode. */
export const countAsks = (payload: string): number => payload.split('\n').length;

/**
 * Joins lines of `encodeAnswer` to a message.
 * @param owner the token of `subjects.owner` on which the answering process listens, if it does
 */
export const encodeAnswers = (lines: readonly string[], owner?: string): string =>
  `${protocolVersion}${owner === undefined ? '' : ` ${owner}`}\n${lines.join('\n')}`;

/** The next release may add words. */
const versionLine = /^(\d{1,9})(?: ([^ \n]*)[^\n]*)?\n/;
/** It becomes a token of a subject. */
const ownerToken = /^[\w-]{1,64}$/;

export const encodeAnswer = (answer: Answer): string => `${answer.index}\t${answer.code}\t${answer.body}`;

const isAnswerCode = (code: string): code is AnswerCode => code === notOwner || isOutcomeCode(code);

/** `undefined` if the line is not an answer. */
function decodeAnswer(line: string): Answer | undefined {
  const code = line.indexOf('\t');
  const body = line.indexOf('\t', code + 1);
  const index = Number(line.slice(0, code));
  const name = line.slice(code + 1, body);
  if (code < 1 || body < 0 || !Number.isInteger(index) || !isAnswerCode(name)) return undefined;
  return { index, code: name, body: line.slice(body + 1) };
}

/** One part of the answers to a batch. */
export interface AnswerPart {
  readonly answers: readonly Answer[];
  /** The version of the protocol that the process speaks. */
  readonly protocol: number;
  /** The token of `subjects.owner` of the process that answered; `undefined` if it named none. */
  readonly owner: string | undefined;
}

/**
 * A malformed line is skipped, and the others count.
 * @throws ProtocolError if the sender's release and this one do not work together.
 */
export function decodeAnswerPart(payload: string, onMalformed: (line: string) => void = () => {}): AnswerPart {
  const version = versionLine.exec(payload);
  const protocol = protocolOf(version === null ? undefined : { protocol: Number(version[1]) });
  const answers: Answer[] = [];
  for (const line of linesOf(payload.slice(version?.[0].length ?? 0))) {
    const answer = decodeAnswer(line);
    if (answer === undefined) onMalformed(line);
    else answers.push(answer);
  }
  const owner = version?.[2];
  return { answers, protocol, owner: owner !== undefined && ownerToken.test(owner) ? owner : undefined };
}

/** As `decodeAnswerPart`, for a reader that does not mind whose answers they are. */
export const decodeAnswers = (payload: string): readonly Answer[] => decodeAnswerPart(payload).answers;
