/**
 * Files of a container: the part `files` of its document. What is stored and sent of a file is the
 * hash of its content; the content is stored once for a tenant (ADR 49). Pure.
 */
import Type, { type Static, type TSchema, type TUnsafe } from 'typebox';
import type { TenantId } from '../../ids.ts';
import { limits } from '../../limits.ts';
import { faultOfPath } from './file-path.ts';
import { isMap, type Kind, type Report } from './kinds.ts';

export const fileHashPattern = '^[0-9a-f]{64}$';
export const FileHash = Type.String({ pattern: fileHashPattern, description: 'SHA-256 of the content, in hex.' });

export interface FileUse {
  /** SHA-256 of the content, in hex; empty beside a `content`. */
  readonly sha256: string;
  readonly bytes: number;
  readonly mode: number;
  /** Only on the way from the body of a request to the store. */
  readonly content?: string;
}
/** By absolute path. */
export type FileUses = Readonly<Record<string, FileUse>>;

const defaultMode = 0o444;
const Mode = Type.Integer({ minimum: 0, maximum: 0o777 });
const givenMode = { description: 'File mode, decimal. Absent: 292 (0444).' };
const pathText = 'By absolute path in the container, not below /proc, /sys or /dev. Read-only there.';

/** As a document shows them. */
export const Files = Type.Record(
  Type.String(),
  Type.Object({ content: Type.String(), mode: Mode }, { additionalProperties: false }),
);

const FileBody = Type.Object(
  {
    content: Type.String({ description: 'Text, up to 64 KiB.' }),
    mode: Type.Optional(Type.Integer({ ...Mode, ...givenMode })),
  },
  { additionalProperties: false },
);

const as = (schema: TSchema): TUnsafe<FileUses> => schema as TUnsafe<FileUses>;
const loneSurrogate = /\p{Surrogate}/u;

function fileIn(value: unknown, report: Report): FileUse | undefined {
  if (!isMap(value)) return report('must be an object with content, and perhaps a mode');
  const { content, mode = defaultMode, from, ...others } = value;
  let isRight = true;
  const fault: Report = (...words) => {
    isRight = false;
    return report(...words);
  };
  for (const name of Object.keys(others)) fault('is no setting: content, mode are', name);
  if (from !== undefined) fault('names a file where the document is written: send what is in it as content', 'from');
  if (typeof mode !== 'number' || !Number.isInteger(mode) || mode < 0 || mode > 0o777)
    fault('must be an integer from 0 to 511, like 292 (0444)', 'mode');
  if (typeof content !== 'string') return from === undefined ? fault('must be a string', 'content') : undefined;
  const bytes = Buffer.byteLength(content);
  if (bytes > limits.fileBytes) fault(`must be at most ${limits.fileBytes} bytes`, 'content');
  if (loneSurrogate.test(content)) fault('must be valid Unicode', 'content');
  return isRight ? { sha256: '', bytes, mode: mode as number, content } : undefined;
}

/** In one order, so that equal files are equal as JSON. */
function parse(value: unknown, report: Report): FileUses | undefined {
  if (!isMap(value)) return report('must be a map of files by their paths');
  const paths = Object.keys(value).sort();
  if (paths.length > limits.files) return report(`must be at most ${limits.files} files`);
  let isRight = true;
  let bytes = 0;
  const files: [path: string, file: FileUse][] = [];
  for (const path of paths) {
    const fault: Report = (message, ...below) => {
      isRight = false;
      return report(message, path, ...below);
    };
    const wrong = faultOfPath(path, paths);
    if (wrong !== undefined) fault(wrong);
    const file = fileIn(value[path], fault);
    if (file === undefined) continue;
    bytes += file.bytes;
    files.push([path, file]);
  }
  if (bytes > limits.filesBytes) return report(`must be at most ${limits.filesBytes} bytes in all`);
  return isRight ? Object.fromEntries(files) : undefined;
}

const given = Type.Record(Type.String(), FileBody, {
  maxProperties: limits.files,
  description: pathText,
});
const noPatch = (): never => {
  throw new Error('files are changed by the document alone');
};

export const filesKind: Kind<FileUses> = {
  given: as(given),
  patch: as(given),
  shown: as(Type.Record(Type.String(), Type.Object({ sha256: FileHash, bytes: Type.Integer(), mode: Type.Integer() }))),
  isStored: (value) =>
    isMap(value) && Object.values(value).every((one) => isMap(one) && typeof one['sha256'] === 'string'),
  parse,
  parsePatch: parse,
  merged: noPatch,
  patchBetween: noPatch,
  faultsOf: () => [],
  canonical: (files) =>
    Object.entries(files)
      .sort(([one], [other]) => (one < other ? -1 : 1))
      .map(([path, { sha256, mode }]) => [path, sha256, mode]),
};

/** Given files as a document shows them. */
export const filesShown = (files: FileUses): Static<typeof Files> =>
  Object.fromEntries(Object.entries(files).map(([path, { content = '', mode }]) => [path, { content, mode }]));

/**
 * The files as they are stored, and their contents by hash.
 * @param hashOf SHA-256 of a text, in hex
 */
export function withoutContents(
  files: FileUses,
  hashOf: (content: string) => string,
): {
  readonly files: FileUses;
  readonly contents: ReadonlyMap<string, string>;
} {
  const contents = new Map<string, string>();
  const bare = Object.entries(files).map(([path, { content, ...file }]) => {
    if (content === undefined) return [path, file] as const;
    const sha256 = hashOf(content);
    contents.set(sha256, content);
    return [path, { ...file, sha256 }] as const;
  });
  return { files: Object.fromEntries(bare), contents };
}

/**
 * The content of one or more files of a tenant. One that no container uses is forgotten some time
 * after it was last put.
 */
export interface FileRecord {
  readonly kind: 'file';
  readonly tenant: TenantId;
  readonly sha256: string;
  /** In base64. */
  readonly content: string;
  readonly bytes: number;
  readonly updatedAtMs: number;
}
