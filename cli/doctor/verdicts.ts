/** Verdicts of `doctor` on its findings, with the remedy for each fault. Pure. */
import type { Schemas } from '../client/api.ts';
import { days } from '../../schemas/limits/units.ts';

/** A clock that is off by more is a fault. */
const clockOffMs = 30_000;
/** A certificate that ends sooner is a fault. */
const certificateDaysMin = 14;

export interface Verdict {
  /** Subject of the check. */
  readonly name: string;
  readonly ok: boolean;
  readonly found: string;
  /** Remedy; absent if nothing is wrong. */
  readonly todo?: string;
}

const right = (name: string, found: string): Verdict => ({ name, ok: true, found });
const wrong = (name: string, found: string, todo: string): Verdict => ({ name, ok: false, found, todo });

const isLoopback = (host: string): boolean => host === 'localhost' || host === '[::1]' || host.startsWith('127.');

/** @param answer a status, or the reason why there is none */
export function reachable(answer: number | string, ms: number): Verdict {
  if (answer === 200) return right('server', `answers in ${Math.round(ms)} ms`);
  const found = typeof answer === 'number' ? `answers ${answer} at /healthz` : answer;
  return wrong('server', found, 'check the address ("longshore profile ls"), its name in DNS, and firewalls');
}

/**
 * @param end expiry of the certificate in ms, or the reason why it is not accepted; `undefined` if
 * no connection was tried
 */
export function encrypted({ protocol, hostname }: URL, end: number | string | undefined, nowMs: number): Verdict {
  if (protocol === 'http:') {
    return isLoopback(hostname)
      ? right('TLS', 'none, and none is needed on this machine')
      : wrong(
          'TLS',
          'none: tokens can be read on the way',
          'put a proxy with TLS before the gateways (docs/deploy.md)',
        );
  }
  const renew = 'renew the certificate of the proxy before the gateways';
  if (typeof end !== 'number') return wrong('TLS', end ?? 'no certificate came', renew);
  const left = Math.floor((end - nowMs) / days);
  const found = `the certificate ends in ${left} days`;
  return left < certificateDaysMin ? wrong('TLS', found, renew) : right('TLS', found);
}

/**
 * @param aheadMs how far the server's clock is ahead, without the part of a second that the header
 * `Date` leaves out; `undefined` if its answer has no `Date`
 */
export function inTime(aheadMs: number | undefined): Verdict {
  if (aheadMs === undefined) return right('clock', 'the server does not say its time');
  if (aheadMs > -1500 && aheadMs < 500) return right('clock', 'the server has the time of this machine');
  const seconds = Math.round(Math.abs(aheadMs) / 1000);
  const found = `the server is ${seconds} s ${aheadMs < 0 ? 'behind' : 'ahead'}`;
  return Math.abs(aheadMs) > clockOffMs
    ? wrong('clock', found, 'let NTP set the clocks of this machine and of the server: tokens depend on them')
    : right('clock', found);
}

export function ready(status: number | string, text: string): Verdict {
  return status === 200
    ? right('ready', 'it serves requests')
    : wrong('ready', `/readyz: ${status} ${text}`.trim(), 'see docs/runbook.md: NATS, the keys of issuers, or a stop');
}

/**
 * @param refusal reason why a request with the token was refused; `undefined` if it was accepted
 */
export function signedIn(refusal: string | undefined, expMs: number | undefined, nowMs: number): Verdict {
  const again = 'sign in again: "longshore login"';
  if (refusal !== undefined) return wrong('token', refusal, again);
  if (expMs === undefined) return right('token', 'accepted');
  const end = new Date(expMs).toISOString();
  return expMs <= nowMs ? wrong('token', `ended at ${end}`, again) : right('token', `accepted, until ${end}`);
}

/** Releases before 1.0 may differ in their second number, later ones in their first. */
const releaseOf = (version: string): string =>
  version
    .split('.')
    .slice(0, version.startsWith('0.') ? 2 : 1)
    .join('.');

export function sameRelease(server: string, here: string): Verdict {
  const found = `${server} at the server, ${here} here`;
  return releaseOf(server) === releaseOf(here)
    ? right('version', found)
    : wrong('version', found, 'install the release of the server here, for all of its commands');
}

/** Verdict for a tenant: whether its containers can run anywhere. */
export const placed = (hosts: number): Verdict =>
  hosts > 0
    ? right('hosts', `${hosts} in your regions`)
    : wrong('hosts', 'none in your regions', 'ask your operator: "longshore host ls" shows them all');

const hostTodo: Readonly<Record<string, string>> = {
  joining: 'start its agent with the join token ("longshore host join-token")',
  unknown: 'it is silent: see whether the machine and its agent run (docs/runbook.md)',
  lost: 'see whether it comes back; if not: "longshore host rm"',
  fenced: 'it is removed when it has stopped its containers (docs/runbook.md)',
};

/** Verdicts for an operator: one for each unhealthy host, or one for all. */
export function healthyHosts(hosts: readonly Schemas['Host'][]): Verdict[] {
  if (hosts.length === 0)
    return [wrong('hosts', 'there are none', 'add one: "longshore host join-token" and docs/deploy.md')];
  const faults = hosts.flatMap(({ key, status, faults, last_heard_at }) => {
    const name = `host ${key}`;
    const silent = status === 'unknown' ? `, last heard at ${last_heard_at ?? '-'}` : '';
    if (status !== 'up') return [wrong(name, `${status}${silent}`, hostTodo[status] ?? 'see docs/runbook.md')];
    return faults.map(({ kind, message }) => wrong(name, `${kind}: ${message}`, 'run the agent\'s "doctor" on it'));
  });
  return faults.length > 0 ? faults : [right('hosts', `${hosts.length}, all up and without faults`)];
}
