/**
 * One-time links to a peer's files: a tenant makes them, and the browser that opens one first
 * exchanges it for a download token. Neither the link nor the verifier is logged or stored.
 */
import { timestamp } from '../../lib/time/timestamp.ts';
import type { PeerLinkView, RedeemedLink } from '../../schemas/api/peer-link.ts';
import type { LinkGrant } from '../../schemas/wire/answers.ts';
import { hashOfToken, parseToken, tokenOfLink } from '../auth/random-tokens.ts';
import { succeeded, tenantOf, type CallOf, type HandlerOf } from '../call.ts';
import { created, failure, ok } from '../http/respond.ts';
import { bodyOf } from './service/actors.ts';
import { refusing } from './service/refusal.ts';
import type { Forage } from './vpn.ts';

type Redeem = CallOf<'peer.link.redeem'>;

export function linkRoutes({ actors, peers, publicUrl, countAuthFailure, log }: Forage) {
  const list: HandlerOf<'peer.link.list'> = (call) =>
    actors.ask(call, { type: 'peer.link.list', tenant: tenantOf(call), peer: call.params.peer });

  const create: HandlerOf<'peer.link.create'> = async (call) => {
    const tenant = tenantOf(call);
    const { peer } = call.params;
    const { text, link } = peers.newLink(tenant, call.body.expiresAtMs);
    const view: PeerLinkView = {
      id: link.id,
      inserted_at: timestamp(link.insertedAtMs),
      expires_at: timestamp(link.expiresAtMs),
      redeemed_at: null,
    };
    const shown = { ...view, url: `${publicUrl()}/vpn#${text}` };
    const kept = call.keep?.(`${peer}/${link.id}`, { view: null, ...shown }) ?? call;
    const outcome = await actors.askWrite(kept, { type: 'peer.link.create', tenant, peer, link });
    return succeeded(outcome) ? created(shown) : outcome;
  };

  const remove: HandlerOf<'peer.link.remove'> = (call) =>
    actors.askWrite(call, {
      type: 'peer.link.remove',
      tenant: tenantOf(call),
      peer: call.params.peer,
      link: call.params.link,
    });

  /**
   * The grant of a link, after its first answer with the end of the download token. Every text that
   * can be a link costs one ask, whatever is wrong with it, so the time of a refusal says nothing;
   * only a browser that loses a race for the link costs two.
   */
  async function granted(call: Redeem, tokenHash: string, partition: number): Promise<LinkGrant | undefined> {
    const hash = hashOfToken(call.body.token);
    const found = await actors.ask(call, { type: 'link.resolve', partition, hash, tokenHash });
    if (found.code === 'unauthenticated') return undefined;
    const grant = bodyOf('link.resolve', found).data;
    if (grant.untilMs !== null) return grant;
    const { tenant, peer, link } = grant;
    const redeemed = await actors.askWrite(call, { type: 'peer.link.redeem', tenant, peer, link, hash, tokenHash });
    return redeemed.code === 'unauthenticated' ? undefined : bodyOf('peer.link.redeem', redeemed).data;
  }

  const redeem = refusing<'peer.link.redeem'>(log, async (call) => {
    const { token, verifier } = call.body;
    const { kind, partition = 0 } = parseToken(token) ?? {};
    const download = tokenOfLink(token, verifier, partition);
    const isLink = kind === 'link' && actors.partitions().includes(partition);
    const grant = isLink ? await granted(call, download.hash, partition) : undefined;
    if (grant === undefined || grant.untilMs === null) {
      countAuthFailure(call, 'link token');
      return failure('unauthenticated');
    }
    const { peer, name, network, untilMs } = grant;
    const urlOf = (file: string): string => `${publicUrl()}/api/forage/${file}?token=${download.text}`;
    return ok({
      peer_id: peer,
      name,
      network,
      // The link of any other is not good.
      state: 'active',
      download_token: download.text,
      expires_at: timestamp(untilMs),
      config_url: urlOf(`config/${peer}`),
      qr_url: urlOf(`config/${peer}/qr`),
      profile_url: urlOf(`profile/${peer}`),
      p12_url: urlOf(`p12/${peer}`),
    } satisfies RedeemedLink);
  });

  return {
    'peer.link.list': list,
    'peer.link.create': create,
    'peer.link.remove': remove,
    'peer.link.redeem': redeem,
  };
}
