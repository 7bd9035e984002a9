/** One decoder for every boundary: bytes in, a trusted value out, or a DecodeError. */
import { Settings } from 'typebox/system';
import type { Static, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { limits } from '../schemas/limits.ts';
import { protocolOf } from '../schemas/wire/version.ts';
import { firstFault } from './validation/fault.ts';

// The default is eight, but a body may have more faults, and all are reported.
Settings.Set({ maxErrors: limits.decodeErrors });

export class DecodeError extends Error {
  constructor(what: string, cause?: unknown) {
    super(what, { cause });
    this.name = 'DecodeError';
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** @throws DecodeError if the bytes are not UTF-8 or not JSON. */
export function decodeJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(utf8.decode(bytes)) as unknown;
  } catch (cause) {
    throw new DecodeError('not JSON', cause);
  }
}

/**
 * Makes a decoder for JSON of one schema. The decoder throws a DecodeError that names one fault: of
 * a union, one of the branch that was meant.
 */
export function decoder<S extends TSchema>(schema: S): (bytes: Uint8Array) => Static<S> {
  const check = checker(schema);
  return (bytes) => check(decodeJson(bytes));
}

/**
 * Makes a decoder for messages of other programs, which checks the protocol's version before the
 * shape. The decoder throws ProtocolError if the two releases do not work together, and otherwise
 * as `decoder`.
 */
export function messageDecoder<S extends TSchema>(schema: S): (bytes: Uint8Array) => Static<S> {
  const check = checker(schema);
  return (bytes) => {
    const value = decodeJson(bytes);
    protocolOf(value);
    return check(value);
  };
}

function checker<S extends TSchema>(schema: S): (value: unknown) => Static<S> {
  const compiled = Compile(schema);
  return (value) => {
    if (compiled.Check(value)) return value;
    throw new DecodeError(firstFault(compiled.Errors(value)));
  };
}
