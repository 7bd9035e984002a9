/** Names of the interfaces in the router namespace, by what they lead to. Pure. */
import { createHash } from 'node:crypto';
import type { Attachment, DesiredNetwork } from '../../schemas/wire/net.ts';

export const linkPrefixes = { container: 'lsc', wayOut: 'lso', vpn: 'lsv', ike: 'lsi', mesh: 'lsm' } as const;

/** Linux takes at most 15 characters. */
const named = (to: keyof typeof linkPrefixes, text: string): string =>
  linkPrefixes[to] + createHash('sha256').update(text).digest('hex').slice(0, 12);

/** Another run has another name. */
export const linkOf = ({ id, run }: Pick<Attachment, 'id' | 'run'>): string => named('container', `${id} ${run}`);
export const wayOutLinkOf = ({ run }: NonNullable<DesiredNetwork['way_out']>): string => named('wayOut', run);
export const vpnLinkOf = (router: string, network: string): string => named('vpn', `${router} ${network}`);
/** Peers that came by IKEv2 are behind it. */
export const ikeLinkOf = (router: string): string => named('ike', router);
/** It has the name also in the host's namespace, where it is made. */
export const meshLinkOf = (router: string): string => named('mesh', router);

/** Of strongSwan's interface, and of the one that `longshore-net` leaves in its place. */
export const ipsecName = /^ipsec\d+$/;
