/** One decoder for every boundary: bytes in, a trusted value out, or a DecodeError. */
import { Settings } from 'typebox/system';
import type { Static, TSchema } from 'typebox';
import { Compile } from 'typebox/compile';
import { limits } from '../schemas/limits.ts';
import { protocolOf } from '../schemas/wire/version.ts';

// Eight by default; a body may be wrong in more places than that, and all are reported.
Settings.Set({ maxErrors: limits.decodeErrors });

export class DecodeError extends Error {
  constructor(what: string, cause?: unknown) {
    super(what, { cause });
    this.name = 'DecodeError';
  }
}

const utf8 = new TextDecoder('utf-8', { fatal: true });

/** @throws DecodeError where the bytes are no UTF-8 or no JSON. */
export function decodeJson(bytes: Uint8Array): unknown {
  try {
    return JSON.parse(utf8.decode(bytes)) as unknown;
  } catch (cause) {
    throw new DecodeError('not JSON', cause);
  }
}

/**
 * A decoder for JSON of one schema. The decoder throws DecodeError, naming the first place that is
 * wrong.
 */
export function decoder<S extends TSchema>(schema: S): (bytes: Uint8Array) => Static<S> {
  const check = checker(schema);
  return (bytes) => check(decodeJson(bytes));
}

/**
 * A decoder for what another program says: its protocol's version counts before the shape. The
 * decoder throws ProtocolError where the two releases do not work together, else as `decoder`.
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
    const [first] = compiled.Errors(value);
    throw new DecodeError(`${first?.instancePath || '/'} ${first?.message ?? 'is invalid'}`);
  };
}
