/** Links to the files of a peer: `peer link`, `peer links` and `peer unlink`. */
import { dataOf, doneOf, type Schemas } from '../../client/api.ts';
import type { Context } from '../../context.ts';
import { showList } from '../../terminal/list.ts';
import { agoText, tableOf } from '../../terminal/table.ts';
import { findPeer } from '../find.ts';

export interface LinkOptions {
  readonly once?: true;
  readonly pac?: true;
  readonly expires?: string;
}

/** Files that a device fetches with a download token, by purpose. */
const linkPaths = {
  WireGuard: 'config/:peer',
  'WireGuard, QR code': 'config/:peer/qr',
  'iPhone, iPad, Mac': 'profile/:peer?format=mobileconfig',
  'Android, strongSwan': 'profile/:peer?format=sswan',
  Windows: 'profile/:peer?format=ps1',
  'Linux, strongSwan': 'profile/:peer?format=swanctl',
  'PKCS#12': 'p12/:peer',
} as const;

export async function link(context: Context, name: string, { once, pac, expires }: LinkOptions): Promise<void> {
  const { api, server, show, tell } = context;
  const { id: peer } = await findPeer(context, name);
  const params = { path: { peer } };
  const end = expires === undefined ? {} : { expires_at: expires };
  if (once === true) {
    const made = await dataOf(api.POST('/api/forage/peers/{peer}/links', { params, body: end }));
    show(made, made.url);
    tell(
      `The browser that opens it first has the keys of the device, and no other. It can be opened until ` +
        `${made.expires_at}. To end it now: longshore peer unlink ${name} ${made.id}`,
    );
    return;
  }
  const body = { scope: pac === true ? 'pac' : 'download', ...end } as const;
  const made = await dataOf(api.POST('/api/forage/peers/{peer}/tokens', { params, body }));
  const paths = pac === true ? { 'Proxy auto-config': 'pac' } : linkPaths;
  const all = Object.entries(paths).map(([what, path]) => {
    const url = new URL(`${server}/api/forage/${path.replace(':peer', peer)}`);
    url.searchParams.set('token', made.token);
    return { for: what, url: url.href };
  });
  const rows = all.map((one) => [one.for, one.url]);
  show({ ...made, links: all }, tableOf(['for', 'address'], rows, ''));
  const danger = pac === true ? '' : ' Who has one has the keys of the device.';
  tell(`They end at ${made.expires_at}.${danger} To end them now: longshore peer unlink ${name} ${made.id}`);
}

type Listed = Schemas['PeerToken'] | (Schemas['PeerLink'] & { readonly scope: 'once' });

export async function links(context: Context, name: string): Promise<void> {
  const { api, terminal } = context;
  const { id: peer, tokens } = await findPeer(context, name);
  const once = await dataOf(api.GET('/api/forage/peers/{peer}/links', { params: { path: { peer } } }));
  const items: readonly Listed[] = [...tokens, ...once.map((one) => ({ ...one, scope: 'once' as const }))];
  showList(context, {
    items,
    columns: {
      id: ({ id }) => id,
      kind: ({ scope }) => scope,
      age: ({ inserted_at }) => agoText(inserted_at, terminal.nowMs()),
      ends: ({ expires_at }) => expires_at,
      opened: (one) => ('redeemed_at' in one ? (one.redeemed_at ?? '') : ''),
    },
    nameOf: ({ id }) => id,
    empty: 'There are no links.',
  });
}

/**
 * Revokes a token or a one-time link. The peer lists ids of its tokens; any other id is a link's.
 */
export async function unlink(context: Context, name: string, token: string): Promise<void> {
  const { api, show } = context;
  const { id: peer, tokens } = await findPeer(context, name);
  const isToken = tokens.some(({ id }) => id === token);
  const removed = isToken
    ? api.DELETE('/api/forage/peers/{peer}/tokens/{token}', { params: { path: { peer, token } } })
    : api.DELETE('/api/forage/peers/{peer}/links/{link}', { params: { path: { peer, link: token } } });
  await doneOf(removed);
  show({ peer, token }, token);
}
