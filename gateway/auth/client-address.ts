/** The client's address, and the name under which the client is rate-limited. */
import { isIP, isIPv4, isIPv6, type BlockList } from 'node:net';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../lib/time/clock.ts';
import type { Fields, Log } from '../../lib/log.ts';
import { limits } from '../../schemas/limits.ts';
import { plainAddress, type RequestHead } from '../http/engine/engine.ts';

/**
 * Characters of an entry that is not an address, in the warning: an IPv6 address with brackets and
 * a port is shorter.
 */
export const forwardedHopChars = 64;

/** Entries of X-Forwarded-For that are checked, from the last on. */
const forwardedHops = 16;

type Origin = Pick<RequestHead, 'address' | 'headers'>;

const lastHop = (list: string): string => list.slice(list.lastIndexOf(',') + 1).trim();

const withPort = /^([\d.]+):\d{1,5}$/;
const inBrackets = /^\[([^\]]+)\](?::\d{1,5})?$/;

/** The address in a hop, which may have a port, and brackets around IPv6. */
function addressOfHop(hop: string): string | undefined {
  if (isIP(hop) !== 0) return plainAddress(hop);
  const ipv4 = withPort.exec(hop)?.[1] ?? '';
  if (isIPv4(ipv4)) return ipv4;
  const ipv6 = inBrackets.exec(hop)?.[1] ?? '';
  return isIPv6(ipv6) ? plainAddress(ipv6) : undefined;
}

interface Found {
  readonly address: string;
  /** A hop that is not an address, if the search ended there. */
  readonly malformed?: string;
}

/**
 * The address of the socket; or, behind a trusted proxy, the last address in X-Forwarded-For that
 * is not a trusted proxy. The client itself may have written the entries before it. If that entry
 * is not an address, the address is that of the proxy that wrote it.
 */
function clientAddress(socket: string, forwardedFor: string, isTrusted: (address: string) => boolean): Found {
  if (!isTrusted(socket)) return { address: socket };
  let proxy = socket;
  let rest = forwardedFor;
  for (let hops = 0; hops < forwardedHops; hops++) {
    const hop = lastHop(rest);
    const address = addressOfHop(hop);
    if (address === undefined) return { address: proxy, malformed: hop };
    if (!isTrusted(address)) return { address };
    proxy = address;
    const comma = rest.lastIndexOf(',');
    if (comma < 0) break;
    rest = rest.slice(0, comma);
  }
  return { address: socket };
}

/**
 * The name of a client for rate limits. An IPv6 client has at least a /64 to itself and may use
 * another address for every request (RFC 6177, RFC 8981), so it is named by its network.
 */
export function clientOf(address: string): string {
  if (!isIPv6(address)) return address;
  const [head = '', tail] = (address.split('%', 1)[0] ?? '').split('::', 2);
  const groups = head === '' ? [] : head.split(':');
  if (tail !== undefined) {
    // A dotted quad at the end is two groups.
    const after = tail === '' ? 0 : tail.split(':').length + (tail.includes('.') ? 1 : 0);
    while (groups.length < 8 - after) groups.push('0');
    groups.push(...(tail === '' ? [] : tail.split(':')));
  }
  return `${groups
    .slice(0, 4)
    .map((group) => Number.parseInt(group, 16).toString(16))
    .join(':')}::/64`;
}

type Warning = 'forwarded_for_untrusted' | 'forwarded_for_malformed';

export class ClientAddresses {
  readonly #trusted: BlockList;
  readonly #clock: Clock;
  readonly #log: Log;
  /** Caches verdicts: `BlockList` calls native code, and a gateway has few proxies. */
  readonly #verdicts = new LRUCache<string, boolean>({ max: limits.addressesRemembered });
  readonly #networks = new LRUCache<string, string>({ max: limits.addressesRemembered });
  readonly #warnedAtMs: Record<Warning, number> = {
    forwarded_for_untrusted: -Infinity,
    forwarded_for_malformed: -Infinity,
  };

  constructor(trusted: BlockList, dependencies: { readonly clock: Clock; readonly log: Log }) {
    this.#trusted = trusted;
    this.#clock = dependencies.clock;
    this.#log = dependencies.log;
  }

  readonly isTrusted = (address: string): boolean => {
    const known = this.#verdicts.get(address);
    if (known !== undefined) return known;
    const verdict = this.#trusted.check(address, isIPv6(address) ? 'ipv6' : 'ipv4');
    this.#verdicts.set(address, verdict);
    return verdict;
  };

  addressOf(origin: Origin): string {
    const { forwardedFor } = origin.headers;
    if (forwardedFor === undefined) return origin.address;
    if (!this.isTrusted(origin.address)) this.#warn('forwarded_for_untrusted', { address: origin.address });
    const { address, malformed } = clientAddress(origin.address, forwardedFor, this.isTrusted);
    if (malformed !== undefined) {
      const hop = malformed.slice(0, forwardedHopChars);
      this.#warn('forwarded_for_malformed', { address: origin.address, hop });
    }
    return address;
  }

  clientOf(origin: Origin): string {
    const address = this.addressOf(origin);
    if (!address.includes(':')) return address;
    const known = this.#networks.get(address);
    if (known !== undefined) return known;
    const network = clientOf(address);
    this.#networks.set(address, network);
    return network;
  }

  /**
   * If TRUSTED_PROXIES lacks a proxy, or a proxy writes no addresses, all clients behind it count
   * as one.
   */
  #warn(event: Warning, fields: Fields): void {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#warnedAtMs[event] < limits.forwardedWarnMs) return;
    this.#warnedAtMs[event] = nowMs;
    this.#log.warn(event, fields);
  }
}
