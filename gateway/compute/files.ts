/**
 * Files of a document: their contents go to the owner before the document, which names them by
 * their hashes, and come back into the documents that are answered (ADR 49).
 */
import { createHash } from 'node:crypto';
import { fill } from '../../lib/fill.ts';
import { decodeAnswer } from '../../lib/rpc/decode.ts';
import type { AskOwner, Outcome } from '../../lib/rpc/partition-client.ts';
import { withoutContents } from '../../schemas/api/fields/files-part.ts';
import type { Declaration, StoredSpec } from '../../schemas/api/spec.ts';
import { limits } from '../../schemas/limits.ts';
import { succeeded, tenantOf, type Call, type Writer } from '../call.ts';

/** By hash. */
export type Contents = ReadonlyMap<string, string>;

/** Contents in one ask or one answer: in base64 they fit into a turn, and into a message. */
const bytesAtOnce = limits.turnBytes / 2;

const sha256Of = (text: string): string => createHash('sha256').update(text).digest('hex');

export function takenFrom(given: Declaration): { readonly declaration: Declaration; readonly contents: Contents } {
  const { files: taken } = given.spec;
  if (taken === undefined) return { declaration: given, contents: new Map() };
  const { files, contents } = withoutContents(taken, sha256Of);
  return { declaration: { ...given, spec: { ...given.spec, files } }, contents };
}

function pagesOf<T>(items: readonly T[], bytesOf: (item: T) => number): T[][] {
  const pages: T[][] = [];
  for (let rest = items; rest.length > 0;) {
    const { values } = fill(rest, { bytes: bytesAtOnce }, (value) => ({ value, bytes: bytesOf(value) }));
    pages.push(values);
    rest = rest.slice(values.length);
  }
  return pages;
}

export interface Files {
  /** `undefined` if all are stored, otherwise the refusal. */
  store(call: Call, contents: Contents): Promise<Outcome | undefined>;
  /** A document that an owner answered, with the contents of its files. */
  shown(call: Call, outcome: Outcome, known?: Contents): Promise<Outcome>;
}

export function createFiles({ ask, newOperationId }: Writer & { readonly ask: AskOwner }): Files {
  /** The conditions of the request are about its document. */
  const originOf = ({ origin: { when: _, head: __, ...origin } }: Call): Call['origin'] => origin;

  const contentsOf = async (call: Call, hashes: readonly string[]): Promise<Outcome | Contents> => {
    const found = new Map<string, string>();
    // Each may be as large as one can be.
    for (const page of pagesOf(hashes, () => limits.fileBytes)) {
      const get = { type: 'file.get', tenant: tenantOf(call), hashes: page, ...originOf(call) } as const;
      const outcome = await ask('read', get, call.deadlineMs);
      if (!succeeded(outcome)) return outcome;
      for (const [index, content] of decodeAnswer('file.get', outcome.body).data.entries())
        found.set(page[index]!, Buffer.from(content, 'base64').toString());
    }
    return found;
  };

  return {
    store: async (call, contents) => {
      const stored = [...contents].map(([sha256, text]) => ({ sha256, bytes: Buffer.from(text) }));
      const putting = pagesOf(stored, ({ bytes }) => bytes.length).map((page) => {
        const files = page.map(({ sha256, bytes }) => ({
          sha256,
          content: bytes.toString('base64'),
          bytes: bytes.length,
        }));
        const put = {
          type: 'file.put',
          tenant: tenantOf(call),
          files,
          ...originOf(call),
          op: newOperationId(),
        } as const;
        return ask('write', put, call.deadlineMs);
      });
      return (await Promise.all(putting)).find((outcome) => !succeeded(outcome));
    },

    shown: async (call, outcome, known = new Map()) => {
      // Most have none.
      if (!succeeded(outcome) || !outcome.body.includes('"sha256"')) return outcome;
      const answered = JSON.parse(outcome.body) as { readonly data: StoredSpec };
      const files = Object.entries(answered.data.files ?? {});
      const missing = new Set(files.flatMap(([, { sha256 }]) => (known.has(sha256) ? [] : [sha256])));
      const found = await contentsOf(call, [...missing]);
      if ('code' in found) return found;
      const contents = new Map([...known, ...found]);
      const shown = files.map(([path, { sha256, mode }]) => [path, { content: contents.get(sha256) ?? '', mode }]);
      const data = { ...answered.data, files: Object.fromEntries(shown) as object };
      return { ...outcome, body: JSON.stringify({ ...answered, data }) };
    },
  };
}
