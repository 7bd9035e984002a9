/**
 * Asks and answers at the boundary: JSON in, a value of the table's type out
 * (schemas/wire/asks.ts), or a DecodeError. A schema is compiled at its first use.
 */
import type { TSchema } from 'typebox';
import { Compile, type Validator } from 'typebox/compile';
import { Conditions } from '../../schemas/api/etag.ts';
import { asks, isAskType, isWriteType, type AnswerOf, type Ask, type ReadableType } from '../../schemas/wire/asks.ts';
import { Once } from '../../schemas/records/kept-answer.ts';
import { Cause } from '../../schemas/wire/audit.ts';
import { linesOf } from '../../schemas/wire/codec.ts';
import { protocolOf } from '../../schemas/wire/version.ts';
import { DecodeError } from '../decode.ts';
import { firstFault } from '../validation/fault.ts';

type Check = Pick<Validator, 'Check' | 'Errors'>;

const compiled = new Map<TSchema, Check>();
function checkOf(schema: TSchema): Check {
  let check = compiled.get(schema);
  if (check === undefined) compiled.set(schema, (check = Compile(schema)));
  return check;
}

function parse(text: string): unknown {
  try {
    return JSON.parse(text) as unknown;
  } catch (cause) {
    throw new DecodeError('not JSON', cause);
  }
}

/** @throws DecodeError, always */
function refuse(what: string, check: Check, value: unknown): never {
  throw new DecodeError(`${what}: ${firstFault(check.Errors(value))}`);
}

/** One line of a batch. @throws DecodeError */
export const decodeAsk = (line: string): Ask => askOf(parse(line));

function askOf(given: unknown): Ask {
  const value = given as Partial<
    Record<'type' | 'rid' | 'trace' | 'budgetMs' | 'op' | 'cause' | 'when' | 'repeatable', unknown>
  > | null;
  const type = value?.type;
  if (!isAskType(type)) throw new DecodeError(`no such ask: ${String(type).slice(0, 64)}`);
  if (typeof value?.rid !== 'string' || typeof value.budgetMs !== 'number') {
    throw new DecodeError(`${type}: without the id of its request, or its budget`);
  }
  if (value.trace !== undefined && typeof value.trace !== 'string')
    throw new DecodeError(`${type}: its trace is no text`);
  if (isWriteType(type) && typeof value.op !== 'string') {
    throw new DecodeError(`${type}: without the id of its operation`);
  }
  if (value.cause !== undefined && !checkOf(Cause).Check(value.cause)) refuse(type, checkOf(Cause), value.cause);
  if (value.when !== undefined && !checkOf(Conditions).Check(value.when)) refuse(type, checkOf(Conditions), value.when);
  const { repeatable } = value;
  if (repeatable !== undefined && !checkOf(Once).Check(repeatable)) refuse(type, checkOf(Once), repeatable);
  const check = checkOf(asks[type].ask);
  // The table's type, by the check against the table's schema.
  return check.Check(value) ? (value as Ask) : refuse(type, check, value);
}

/**
 * A line that is no ask is a DecodeError in its place; the others stand.
 * @throws ProtocolError where the sender's release and this one do not work together.
 */
export function decodeAsks(payload: string): readonly (Ask | DecodeError)[] {
  const values = linesOf(payload).map(attempt(parse));
  // A first line that is damaged says no version.
  if (!(values[0] instanceof DecodeError)) protocolOf(values[0]);
  return values.map((value) => (value instanceof DecodeError ? value : attempt(askOf)(value)));
}

/** The error in place of what it is thrown for. */
const attempt =
  <T, R>(decode: (from: T) => R) =>
  (from: T): R | DecodeError => {
    try {
      return decode(from);
    } catch (error) {
      if (error instanceof DecodeError) return error;
      throw error;
    }
  };

/** The body of a successful answer. @throws DecodeError */
export function decodeAnswer<Type extends ReadableType>(type: Type, body: string): AnswerOf<Type> {
  const value = parse(body);
  const check = checkOf(asks[type].answer);
  return check.Check(value) ? (value as AnswerOf<Type>) : refuse(`answer to ${type}`, check, value);
}
