/**
 * Tokens that are random: of hosts that join, and of URLs of a peer's files. Their text says whom
 * to ask; only its hash is stored.
 */
import { createHash, randomBytes } from 'node:crypto';
import type { TokenScope } from '../../schemas/api/peer.ts';
import { isHostKey, type HostKey } from '../../schemas/ids.ts';

const scopeMarks = { download: 'd', pac: 'p' } as const satisfies Record<TokenScope, string>;

/**
 * The SHA-256 of a token in hex, which is all that is stored of it. Tokens are random, so a slow
 * hash is not needed.
 */
export const hashOfToken = (text: string): string => createHash('sha256').update(text).digest('hex');

/** A token names its partition, so that the gateway knows whom to ask. */
export function newToken(scope: TokenScope, partition: number): { readonly text: string; readonly hash: string } {
  const text = `ls${scopeMarks[scope]}_${partition}_${randomBytes(32).toString('base64url')}`;
  return { text, hash: hashOfToken(text) };
}

/** Returns undefined for anything that is not one of our tokens. */
export function parseToken(text: string): { readonly scope: TokenScope; readonly partition: number } | undefined {
  const [, mark, partition] = /^ls([dp])_(0|[1-9]\d{0,3})_[A-Za-z0-9_-]{43}$/.exec(text) ?? [];
  if (partition === undefined) return undefined;
  return { scope: mark === scopeMarks.pac ? 'pac' : 'download', partition: Number(partition) };
}

/** `lsj_<host key>_<secret>`: the key determines the partition, whose owner checks the secret. */
const joinTokenPattern = /^lsj_([a-z0-9-]{1,63})_[A-Za-z0-9_-]{43}$/;

/** The host that a join token is for; undefined if the text can't be a join token. */
export function hostOfJoinToken(joinToken: string): HostKey | undefined {
  const key = joinTokenPattern.exec(joinToken)?.[1];
  return key !== undefined && isHostKey(key) ? key : undefined;
}
