/**
 * ETags of what can be written, and the preconditions of a write (RFC 9110 sections 8.8 and 13). An
 * ETag stands for all that is declared of a resource and for nothing else, so a client that changes
 * what it has read loses nobody else's change. Pure.
 */
import Type, { type Static } from 'typebox';
import { hashesOf, hexWord } from '../text-hash.ts';

/** @param declared of a resource, as JSON can hold it */
export const etagOf = (declared: unknown): string => `"${hashesOf(JSON.stringify(declared)).map(hexWord).join('')}"`;

const Tags = Type.Array(Type.String());

/** `If-Match` and `If-None-Match` as they were sent: ETags, or `*`. */
export const Conditions = Type.Object({ match: Type.Optional(Tags), noneMatch: Type.Optional(Tags) });
export type Conditions = Static<typeof Conditions>;

const weakly = (tag: string): string => tag.replace(/^W\//, '');

/** @param etag of the resource as it is; `undefined` if there is none */
export function isMet({ match, noneMatch = [] }: Conditions, etag: string | undefined): boolean {
  if (etag === undefined) return match === undefined;
  const isKnown = match?.some((tag) => tag === '*' || tag === etag) ?? true;
  return isKnown && !noneMatch.some((tag) => tag === '*' || weakly(tag) === etag);
}

/** An owner's data for headers about a resource, beside the body of its answer. */
export interface ResourceHead {
  readonly etag?: string;
  /** Of a container: the generation for `GET /:id/wait?generation=`. */
  readonly generation?: number;
}

/** The next release may say more behind these. */
const headPattern = /^\{"head":\{(?:"etag":"\\"([\da-f]{16})\\"")?,?(?:"generation":(\d{1,15}))?[^{}]*\},/;

/** @param body of an answer that is an object */
export const withHead = (body: string, etag: string | undefined, generation: number | undefined): string =>
  `{"head":${JSON.stringify({ etag, generation })},${body.slice(1)}`;

/** The body as its client gets it, and what the owner says beside it, if it does. */
export function splitHead(text: string): { readonly body: string; readonly head?: ResourceHead } {
  const [whole, tag, generation] = headPattern.exec(text) ?? [];
  if (whole === undefined) return { body: text };
  const head = {
    ...(tag === undefined ? {} : { etag: `"${tag}"` }),
    ...(generation === undefined ? {} : { generation: Number(generation) }),
  };
  return { body: `{${text.slice(whole.length)}`, head };
}
