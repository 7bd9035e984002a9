/**
 * Download and PAC tokens of a peer: made, revoked, and resolved to what they grant. Pure.
 */
import { limits } from '../../../schemas/limits.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import { peerStateOf, type PeerGrant, type PeerRecord, type TokenScope } from '../../../schemas/api/peer.ts';
import type { PartitionView } from '../state.ts';
import { answer, conflict, data, refuse, type Turn, type TurnContext } from '../turn.ts';
import { find, kept } from './transitions.ts';
import { aliveLinks, aliveTokens, tokenView } from './view.ts';

type Of<Type extends Ask['type']> = Extract<Ask, { type: Type }>;

export function tokenCreate(state: PartitionView, ask: Of<'peer.token.create'>, context: TurnContext): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  const { record } = found;
  const alive = aliveTokens(record, context.nowMs);
  const made = data('created', tokenView(ask.token));
  if (alive.some(({ id }) => id === ask.token.id)) return answer(made);
  if (alive.length >= limits.peerTokens) {
    return conflict('too_many', `the peer has ${limits.peerTokens} tokens; revoke one first`, {
      max: limits.peerTokens,
    });
  }
  return answer(made, kept({ ...record, tokens: [...alive, ask.token], updatedAtMs: context.nowMs }));
}

export function tokenRemove(state: PartitionView, ask: Of<'peer.token.remove'>, context: TurnContext): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  const { record } = found;
  const alive = aliveTokens(record, context.nowMs);
  const tokens = alive.filter(({ id }) => id !== ask.token);
  if (tokens.length === alive.length) return refuse('not_found');
  return answer({ code: 'no_content', body: '' }, kept({ ...record, tokens, updatedAtMs: context.nowMs }));
}

export const notGood = refuse('unauthenticated');

/**
 * The scope of a token of this peer, or of a link to it that was redeemed; `undefined` if it opens
 * nothing now.
 */
export function scopeOf(record: PeerRecord, tokenHash: string, nowMs: number): TokenScope | undefined {
  if (peerStateOf(record, nowMs) !== 'active') return undefined;
  const token = aliveTokens(record, nowMs).find(({ hash }) => hash === tokenHash);
  if (token !== undefined) return token.scope;
  return aliveLinks(record, nowMs).some(({ redeemed }) => redeemed?.tokenHash === tokenHash) ? 'download' : undefined;
}

/**
 * One answer for every invalid token: unknown, revoked, expired, of a peer that is gone,
 * disabled or expired.
 */
export function resolve(state: PartitionView, ask: Of<'token.resolve'>, { nowMs }: TurnContext): Turn {
  const record = state.vpn.peerOfToken(ask.hash);
  const scope = record === undefined ? undefined : scopeOf(record, ask.hash, nowMs);
  if (record === undefined || scope === undefined) return notGood;
  return answer(data('ok', { tenant: record.tenant, peer: record.id, scope } satisfies PeerGrant));
}
