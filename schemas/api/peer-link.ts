/** One-time links to the files of a peer, and what one is redeemed for. */
import Type, { type Static } from 'typebox';
import { NetworkName, PeerId, PeerTokenId } from '../ids.ts';
import { nullable } from './nullable.ts';
import { PeerName, peerStates } from './peer.ts';

/** 32 bytes in base64url. */
export const verifierPattern = '^[A-Za-z0-9_-]{43}$';

export const PeerLinkBody = Type.Object(
  { expires_at: Type.Optional(nullable(Type.String({ format: 'date-time' }))) },
  { additionalProperties: false },
);

export const PeerLinkView = Type.Object(
  {
    id: PeerTokenId,
    inserted_at: Type.String(),
    expires_at: Type.String({ description: 'The last time at which it can be redeemed.' }),
    redeemed_at: nullable(Type.String({ description: 'A link is listed for ten minutes after that.' })),
  },
  { additionalProperties: false },
);
export type PeerLinkView = Static<typeof PeerLinkView>;

/** The URL has the token in its fragment, so that no server, proxy or Referer gets it. */
export const PeerLinkWithUrl = Type.Object(
  { ...PeerLinkView.properties, url: Type.String() },
  { additionalProperties: false },
);

export const LinkRedeemBody = Type.Object(
  {
    token: Type.String({ description: 'The fragment of the link, without `#`.' }),
    verifier: Type.String({
      pattern: verifierPattern,
      description:
        '32 random bytes in base64url, which the browser makes once and keeps: only with the same ones it gets the answer again.',
    }),
  },
  { additionalProperties: false },
);

/** The URLs have the download token in their query. */
export const RedeemedLink = Type.Object(
  {
    peer_id: PeerId,
    name: PeerName,
    network: NetworkName,
    state: Type.Enum([...peerStates]),
    download_token: Type.String(),
    expires_at: Type.String({ description: 'Expiry of the download token, ten minutes after the first answer.' }),
    config_url: Type.String(),
    qr_url: Type.String(),
    profile_url: Type.String(),
    p12_url: Type.String(),
  },
  { additionalProperties: false },
);
export type RedeemedLink = Static<typeof RedeemedLink>;
