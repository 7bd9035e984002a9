/**
 * One-time links of a peer: made, listed, revoked, and redeemed by the browser that comes first.
 * From then on a link is a download token that only this browser has. Pure.
 */
import { timestamp } from '../../../lib/time/timestamp.ts';
import { limits } from '../../../schemas/limits.ts';
import type { LinkGrant } from '../../../schemas/wire/answers.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import { peerStateOf, type PeerLink, type PeerRecord } from '../../../schemas/api/peer.ts';
import type { PeerLinkView } from '../../../schemas/api/peer-link.ts';
import type { PartitionView } from '../state.ts';
import { answer, conflict, data, refuse, repeatable, type Turn, type TurnContext } from '../turn.ts';
import { find, kept } from './transitions.ts';
import { aliveLinks, linkEndMs } from './view.ts';
import { notGood } from './tokens.ts';

type Of<Type extends Ask['type']> = Extract<Ask, { type: Type }>;

const linkView = ({ id, insertedAtMs, expiresAtMs, redeemed }: PeerLink): PeerLinkView => ({
  id,
  inserted_at: timestamp(insertedAtMs),
  expires_at: timestamp(expiresAtMs),
  redeemed_at: redeemed === undefined ? null : timestamp(redeemed.atMs),
});

export function linkList(state: PartitionView, ask: Of<'peer.link.list'>, { nowMs }: TurnContext): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  return answer(data('ok', aliveLinks(found.record, nowMs).map(linkView)));
}

export function linkCreate(state: PartitionView, ask: Of<'peer.link.create'>, { nowMs }: TurnContext): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  const { record } = found;
  const alive = aliveLinks(record, nowMs);
  const link: PeerLink = { ...ask.link, publicKey: record.wireguard.publicKey };
  const made = data('created', linkView(link));
  if (alive.some(({ id }) => id === link.id)) return answer(made);
  if (alive.length >= limits.peerLinks) {
    return conflict('too_many', `the peer has ${limits.peerLinks} one-time links; revoke one first`, {
      max: limits.peerLinks,
    });
  }
  return answer(made, kept({ ...record, links: [...alive, link] }));
}

export function linkRemove(state: PartitionView, ask: Of<'peer.link.remove'>, { nowMs }: TurnContext): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  const { record } = found;
  const alive = aliveLinks(record, nowMs);
  const links = alive.filter(({ id }) => id !== ask.link);
  if (links.length === alive.length) return refuse('not_found');
  return answer({ code: 'no_content', body: '' }, kept({ ...record, links }));
}

/** The link, if it is good for this browser: nobody has redeemed it, or this one has. */
function goodLink(
  record: PeerRecord | undefined,
  { hash, tokenHash }: Pick<Of<'link.resolve'>, 'hash' | 'tokenHash'>,
  nowMs: number,
): PeerLink | undefined {
  if (record === undefined || peerStateOf(record, nowMs) !== 'active') return undefined;
  const link = aliveLinks(record, nowMs).find((one) => one.hash === hash);
  return link?.redeemed === undefined || link.redeemed.tokenHash === tokenHash ? link : undefined;
}

const grantOf = ({ tenant, id, name, network }: PeerRecord, link: PeerLink): LinkGrant => ({
  tenant,
  peer: id,
  link: link.id,
  name,
  network,
  untilMs: link.redeemed === undefined ? null : linkEndMs(link),
});

/** One answer for every link that is not good, as for tokens. */
export function linkResolve(state: PartitionView, ask: Of<'link.resolve'>, { nowMs }: TurnContext): Turn {
  const record = state.vpn.peerOfToken(ask.hash);
  const link = goodLink(record, ask, nowMs);
  return record === undefined || link === undefined ? notGood : answer(data('ok', grantOf(record, link)));
}

export function linkRedeem(state: PartitionView, ask: Of<'peer.link.redeem'>, { nowMs }: TurnContext): Turn {
  const record = state.tenant(ask.tenant).peers.records.get(ask.peer);
  const link = goodLink(record, ask, nowMs);
  if (record === undefined || link === undefined) return notGood;
  if (link.redeemed !== undefined) return answer(repeatable('ok', grantOf(record, link)));
  const redeemed: PeerLink = { ...link, redeemed: { tokenHash: ask.tokenHash, atMs: nowMs } };
  const links = aliveLinks(record, nowMs).map((one) => (one.id === link.id ? redeemed : one));
  return answer(repeatable('ok', grantOf(record, redeemed)), kept({ ...record, links }));
}
