/** Whose request it is, as far as the network tells: the client's address, and the name under which it is limited. */
import { isIPv6, type BlockList } from 'node:net';
import { LRUCache } from 'lru-cache';
import type { Clock } from '../../lib/clock.ts';
import type { Log } from '../../lib/log.ts';
import { limits } from '../../schemas/limits.ts';
import { plainAddress, type RequestHead } from '../http/engine.ts';

type Origin = Pick<RequestHead, 'address' | 'headers'>;

const lastHop = (list: string): string => list.slice(list.lastIndexOf(',') + 1).trim();

/**
 * The address of the socket, or where a trusted proxy is at its other end, the last one in X-Forwarded-For that is none
 * of ours. What stands before it anybody may have written.
 */
function clientAddress({ address, headers }: Origin, isTrusted: (address: string) => boolean): string {
  if (headers.forwardedFor === undefined || !isTrusted(address)) return address;
  let rest = headers.forwardedFor;
  for (let hops = 0; hops < limits.forwardedHops; hops++) {
    const hop = plainAddress(lastHop(rest));
    if (!isTrusted(hop)) return hop === '' ? address : hop;
    const comma = rest.lastIndexOf(',');
    if (comma < 0) break;
    rest = rest.slice(0, comma);
  }
  return address;
}

/**
 * What counts as one client. An IPv6 client has at least a /64 to itself and may take another address for every request
 * (RFC 6177, RFC 8981), so the network is what is counted.
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

export class ClientAddresses {
  readonly #trusted: BlockList;
  readonly #clock: Clock;
  readonly #log: Log;
  /** To ask the list costs a call into native code; the proxies of a gateway are few. */
  readonly #verdicts = new LRUCache<string, boolean>({ max: limits.addressesRemembered });
  readonly #networks = new LRUCache<string, string>({ max: limits.addressesRemembered });
  #warnedAtMs = -Infinity;

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
    if (origin.headers.forwardedFor === undefined) return origin.address;
    if (!this.isTrusted(origin.address)) this.#warn(origin.address);
    return clientAddress(origin, this.isTrusted);
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

  /** A proxy that is missing in TRUSTED_PROXIES makes one client of everybody behind it. */
  #warn(address: string): void {
    const nowMs = this.#clock.monotonicMs();
    if (nowMs - this.#warnedAtMs < limits.forwardedWarnMs) return;
    this.#warnedAtMs = nowMs;
    this.#log.warn('forwarded_for_untrusted', { address });
  }
}
