/**
 * Tokens that are random: of hosts that join, and of URLs of a peer's files. Their text says whom
 * to ask; only its hash is stored.
 */
import { createHash, createHmac, randomBytes } from 'node:crypto';
import type { TokenScope } from '../../schemas/api/peer.ts';
import { isHostKey, type HostKey } from '../../schemas/ids.ts';

/** `link`: it opens nothing itself, and is exchanged for a download token. */
type TokenKind = TokenScope | 'link';
const marks = { download: 'd', pac: 'p', link: 'l' } as const satisfies Record<TokenKind, string>;
const kinds = new Map(Object.entries(marks).map(([kind, mark]) => [mark as string, kind as TokenKind]));

interface NewToken {
  readonly text: string;
  readonly hash: string;
}

/**
 * The SHA-256 of a token in hex, which is all that is stored of it. Tokens are random, so a slow
 * hash is not needed.
 */
export const hashOfToken = (text: string): string => createHash('sha256').update(text).digest('hex');

/** A token names its partition, so that the gateway knows whom to ask. */
function tokenOf(kind: TokenKind, partition: number, secret: Buffer): NewToken {
  const text = `ls${marks[kind]}_${partition}_${secret.toString('base64url')}`;
  return { text, hash: hashOfToken(text) };
}

export const newToken = (kind: TokenKind, partition: number): NewToken => tokenOf(kind, partition, randomBytes(32));

/**
 * The download token that a browser gets for a link. It is computed from the link and from what
 * only this browser knows. So a browser that asks again gets the same token, another one would get
 * another token, and nothing but its hash has to be stored.
 */
export const tokenOfLink = (link: string, verifier: string, partition: number): NewToken =>
  tokenOf('download', partition, createHmac('sha256', link).update(verifier).digest());

/** Returns undefined for anything that is not one of our tokens. */
export function parseToken(text: string): { readonly kind: TokenKind; readonly partition: number } | undefined {
  const [, mark = '', partition] = /^ls([a-z])_(0|[1-9]\d{0,3})_[A-Za-z0-9_-]{43}$/.exec(text) ?? [];
  const kind = kinds.get(mark);
  return kind === undefined ? undefined : { kind, partition: Number(partition) };
}

/** `lsj_<host key>_<secret>`: the key determines the partition, whose owner checks the secret. */
const joinTokenPattern = /^lsj_([a-z0-9-]{1,63})_[A-Za-z0-9_-]{43}$/;

/** The host that a join token is for; undefined if the text can't be a join token. */
export function hostOfJoinToken(joinToken: string): HostKey | undefined {
  const key = joinTokenPattern.exec(joinToken)?.[1];
  return key !== undefined && isHostKey(key) ? key : undefined;
}
