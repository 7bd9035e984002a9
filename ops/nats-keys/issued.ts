/**
 * `issued.json` in a folder of keys: every key that its users and accounts have had, and which of
 * them are revoked. All other files are made from it and from the seeds, so the next command
 * completes one that was cut short.
 */
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import Type, { type Static } from 'typebox';
import { decoder } from '../../lib/decode.ts';
import { writePrivateFile } from '../../lib/process/private-file.ts';

const Seconds = Type.Integer({ minimum: 0 });

const IssuedKey = Type.Object({
  /** Of whose credentials it is, such as `gateway-g1`, or which signing key it is. */
  name: Type.String(),
  /** Public key (`U…`, `A…` or `O…`). */
  key: Type.String(),
  /** Seconds since 1970, as in a JWT. */
  iat: Seconds,
  /** Expiry of its credentials; absent if they never expire. */
  exp: Type.Optional(Seconds),
  /** Beginning of its refusal; absent while it is valid. */
  revoked: Type.Optional(Seconds),
});
export type IssuedKey = Readonly<Static<typeof IssuedKey>>;

const decodeIssued = decoder(Type.Array(IssuedKey));

const pathIn = (folder: string): string => join(folder, 'issued.json');

/**
 * In the order of their issue; none in a new folder.
 * @throws if the file is damaged
 */
export function readIssued(folder: string): readonly IssuedKey[] {
  const path = pathIn(folder);
  if (!existsSync(path)) return [];
  try {
    return decodeIssued(readFileSync(path));
  } catch (cause) {
    throw new Error(`${path} is damaged: restore it from a copy of the folder`, { cause });
  }
}

export const writeIssued = (folder: string, issued: readonly IssuedKey[]): void =>
  writePrivateFile(pathIn(folder), `${JSON.stringify(issued, null, 2)}\n`);

/** The valid keys of that name, the newest last. */
export const validKeysOf = (issued: readonly IssuedKey[], name: string): IssuedKey[] =>
  issued.filter((each) => each.name === name && each.revoked === undefined);
