/** URLs of a peer's files. They contain no token; a client sends its own. */
import { Unfit, fitPeerId } from './fit.ts';
import type { Subject } from './subject.ts';

export interface Links {
  readonly p12: string;
  readonly mobileconfig: string;
  readonly sswan: string;
  readonly ps1: string;
  readonly swanctl: string;
}

/** Checks whether a URL is safe in a file and a certificate, so that nothing needs escaping. */
export const isBaseUrl = (url: string): boolean =>
  /^https?:\/\/[A-Za-z0-9.:[\]-]+(?:\/[A-Za-z0-9._~-]+)*$/.test(url) && !url.includes('..');

export function linksOf({ peer, baseUrl }: Subject): Links {
  if (!isBaseUrl(baseUrl)) throw new Unfit('base URL');
  const id = fitPeerId(peer.id);
  const profile = (format: string): string => `${baseUrl}/api/forage/profile/${id}?format=${format}`;
  return {
    p12: `${baseUrl}/api/forage/p12/${id}`,
    mobileconfig: profile('mobileconfig'),
    sswan: profile('sswan'),
    ps1: profile('ps1'),
    swanctl: profile('swanctl'),
  };
}
