/**
 * Keeps the rules of firewall-rules.ts in the kernel for the bridge of this host's containers: sets
 * them before the first container starts, restores them when they are removed (`nft flush
 * ruleset`), and leaves them in place when the agent ends, because the containers keep running. It
 * checks them on a timer, and from inside a container (firewall-probe.ts). Rules that it cannot
 * enforce are a fault of the host.
 */
import { existsSync, readFileSync } from 'node:fs';
import { every } from '../../lib/time/every.ts';
import type { Log } from '../../lib/log.ts';
import { limits } from '../../schemas/limits.ts';
import type { Network } from '../docker/answers.ts';
import type { Engine } from '../docker/engine.ts';
import { parseEgressRules } from './egress.ts';
import type { Faults } from '../faults.ts';
import { createProbe, type Probe } from './firewall-probe.ts';
import { deniedPackets, firewallRules, firewallTable, withoutCounts } from './firewall-rules.ts';
import type { DeniedCounter, FirewallState, Metrics } from '../metrics.ts';
import { readNameservers } from './nameservers.ts';
import { findNetwork } from './network.ts';
import { NftError, systemNft, type Nft } from './nft.ts';
import type { Owner } from '../docker/ownership.ts';
import { minutes } from '../../schemas/limits/units.ts';

/** The time between two probes that test the rules from inside a container. */
export const firewallProbeMs = 10 * minutes;

export interface Firewall {
  /** Sets the rules for this network, unless they are in place. Never rejects. */
  cover(network: Network): Promise<void>;
  /** Checks the rules, and repairs them. Never rejects. */
  look(): Promise<void>;
  /** Checks the rules at an interval. */
  run(intervalMs: number, signal: AbortSignal): Promise<void>;
  state(): FirewallState;
  /** The reason why no container may start now; `undefined` if containers may start. */
  refusal(): string | undefined;
}

/** The parts of the kernel's state that the agent checks beside the rules. */
export interface Kernel {
  hasInterface(name: string): boolean;
  /** `true` if packets from port to port of a bridge pass the rules. */
  isBridgedFiltered(): boolean;
}

export interface FirewallParts {
  readonly settings: {
    readonly CONTAINER_FIREWALL: 'on' | 'required' | 'off';
    readonly CONTAINER_EGRESS_ALLOW: readonly string[];
    readonly CONTAINER_EGRESS_DENY: readonly string[];
  };
  readonly engine: Engine;
  readonly owner: Owner;
  readonly faults: Faults;
  readonly metrics: Pick<Metrics, 'firewallRepaired' | 'firewallDenied'>;
  readonly steadyMs: () => number;
  readonly log: Log;
  /** Replaces the machine's own. */
  readonly kernel?: Kernel;
  readonly nft?: Nft;
  readonly probe?: Probe;
}

/**
 * The interface of the network: Linux allows 15 characters, so the engine uses the first 12 of the
 * network's id.
 */
export const bridgeOf = ({ Id, Options }: Network): string =>
  Options?.['com.docker.network.bridge.name'] ?? `br-${Id.slice(0, 12)}`;

/** The messages of the fault: what is open, and what to do. */
const openMessages = {
  missing: 'containers reach this host and its network: there is no program nft; install the package nftables',
  forbidden:
    'containers reach this host and its network: the agent may not set the firewall; give it CAP_NET_ADMIN ' +
    '(AmbientCapabilities= in its unit), or keep rules of your own and set CONTAINER_FIREWALL=off',
  elsewhere:
    "containers may reach their host and its network: the engine's bridge is not on this machine, or not in the agent's " +
    'network namespace; run the agent there, or keep rules of your own and set CONTAINER_FIREWALL=off',
  bridged:
    'containers of different tenants may reach each other: the kernel hands bridged packets to no firewall; load ' +
    'br_netfilter and set net.bridge.bridge-nf-call-iptables (and -ip6tables) to 1',
} as const;

/** @param read `undefined` if there is no such file */
export function isBridgedFiltered(read: (path: string) => string | undefined): boolean {
  const isSet = (name: string): boolean => read(`/proc/sys/net/bridge/${name}`)?.trim() === '1';
  // Absent if the kernel has no IPv6.
  const hasIpv6 = read('/proc/net/if_inet6') !== undefined;
  return isSet('bridge-nf-call-iptables') && (!hasIpv6 || isSet('bridge-nf-call-ip6tables'));
}

const systemKernel: Kernel = {
  hasInterface: (name) => existsSync(`/sys/class/net/${name}`),
  isBridgedFiltered: () =>
    isBridgedFiltered((path) => {
      try {
        return readFileSync(path, 'utf8');
      } catch {
        // For example, the module br_netfilter is not loaded.
        return undefined;
      }
    }),
};

/**
 * Resolves at the work's end, or soon after the signal: an agent that stops does not wait for a
 * container of its own.
 */
const untilAborted = (work: Promise<void>, signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    const leave = (): void => void setTimeout(resolve, limits.farewellMs);
    signal.addEventListener('abort', leave, { once: true });
    if (signal.aborted) leave();
    void work.then(() => {
      signal.removeEventListener('abort', leave);
      resolve();
    });
  });

export function createFirewall(parts: FirewallParts): Firewall {
  const { settings, engine, owner, faults, metrics, steadyMs, log } = parts;
  const mode = settings.CONTAINER_FIREWALL;
  const table = firewallTable(owner);
  const kernel = parts.kernel ?? systemKernel;
  const nft = parts.nft ?? systemNft;
  const probe = parts.probe ?? createProbe(engine, owner);
  const allow = parseEgressRules(settings.CONTAINER_EGRESS_ALLOW).rules;
  const deny = parseEgressRules(settings.CONTAINER_EGRESS_DENY).rules;

  let state: FirewallState = mode === 'off' ? 'off' : 'waiting';
  /** The last rules that were set, and their form in the output of nft. */
  let placed: { readonly bridge: string; readonly rules: string; readonly shown: string } | undefined;
  let counted: Readonly<Record<DeniedCounter, number>> | undefined;
  let probedAtMs: number | undefined;
  /** `true` if the last probe from inside a container got through. */
  let isReached = false;
  /** The check in progress: one at a time. */
  let looking: Promise<void> = Promise.resolve();

  const open = (message: string, error?: unknown): void => {
    if (state !== 'open') log.warn('container_firewall_open', { message, error });
    state = 'open';
    probedAtMs = undefined;
    faults.raise('container_firewall', message);
  };
  const hold = (next: 'waiting' | 'unchecked' | 'enforced'): void => {
    state = next;
    faults.clear('container_firewall');
  };

  const count = (listed: string): void => {
    const now = deniedPackets(listed);
    for (const [counter, packets] of Object.entries(now) as [DeniedCounter, number][]) {
      const before = counted?.[counter] ?? 0;
      metrics.firewallDenied(counter, Math.max(0, packets - before));
    }
    counted = now;
  };

  const place = async (bridge: string, rules: string): Promise<void> => {
    await nft(['-f', '-'], rules);
    counted = undefined;
    placed = { bridge, rules, shown: withoutCounts(await nft(['list', 'table', 'inet', table])) };
  };

  /** `undefined` if there is no such table. */
  const shown = (): Promise<string | undefined> =>
    nft(['list', 'table', 'inet', table]).catch((error: unknown) => {
      if (error instanceof NftError && error.fault === 'failed' && /no such file/i.test(error.message))
        return undefined;
      throw error;
    });

  /** @returns `true` if it has just set the rules */
  const ensure = async (bridge: string, subnets: readonly string[]): Promise<boolean> => {
    const resolvers = await readNameservers();
    const rules = firewallRules({ table, bridge, subnets, allow, deny, resolvers });
    if (placed?.rules !== rules) {
      await place(bridge, rules);
      log.info('container_firewall_set', { table, bridge, resolvers });
      return true;
    }
    const listed = await shown();
    if (listed !== undefined && withoutCounts(listed) === placed.shown) {
      count(listed);
      return false;
    }
    await place(bridge, rules);
    metrics.firewallRepaired();
    log.warn('container_firewall_repaired', { table, bridge, was: listed === undefined ? 'gone' : 'changed' });
    return true;
  };

  const coverNow = async (network: Network): Promise<void> => {
    const bridge = bridgeOf(network);
    if (!kernel.hasInterface(bridge)) {
      placed = undefined;
      return open(openMessages.elsewhere);
    }
    const subnets = (network.IPAM?.Config ?? []).flatMap(({ Subnet = [] }) => Subnet);
    const isFresh = await ensure(bridge, subnets);
    if (isFresh) probedAtMs = undefined;
    if (!kernel.isBridgedFiltered()) return open(openMessages.bridged);
    if (!isReached && (isFresh || state !== 'enforced')) hold('unchecked');
  };

  const guarded = (work: () => Promise<void>): Promise<void> => {
    if (mode === 'off') return Promise.resolve();
    looking = looking.then(work).catch((error: unknown) => {
      if (!(error instanceof NftError)) {
        // A fault of the engine proves nothing about the rules in the kernel.
        log.debug('container_firewall_check_failed', { error });
        return;
      }
      placed = undefined;
      const known = error.fault === 'failed' ? undefined : openMessages[error.fault];
      open(known ?? `containers reach this host and its network: nft refuses the rules: ${error.message}`, error);
    });
    return looking;
  };

  /**
   * Runs beside the checks of the rules: nothing waits for the probe's container before its own is
   * started.
   */
  const check = async (signal: AbortSignal): Promise<void> => {
    const isDue = probedAtMs === undefined || steadyMs() - probedAtMs >= firewallProbeMs;
    if (!isDue || placed === undefined || !kernel.isBridgedFiltered()) return;
    const { bridge } = placed;
    const network = await findNetwork(engine, owner);
    if (network === undefined || bridgeOf(network) !== bridge) return;
    probedAtMs = steadyMs();
    const result = await probe(network, signal);
    if (signal.aborted) return;
    // The rules were removed meanwhile, so the result is out of date.
    if (placed?.bridge !== bridge) return;
    switch (result.kind) {
      case 'held':
        isReached = false;
        if (state !== 'enforced') log.info('container_firewall_checked', { table });
        return hold('enforced');
      case 'reached':
        isReached = true;
        return open(`containers reach ${result.what} although the rules are in place: look at nft list ruleset`);
      case 'failed':
        log.warn('container_firewall_unchecked', { table, why: result.why });
    }
  };

  const look = (): Promise<void> =>
    guarded(async () => {
      const network = await findNetwork(engine, owner);
      if (network === undefined) {
        // Shows before the first container comes whether rules can be set.
        await nft(['list', 'tables']);
        return hold('waiting');
      }
      await coverNow(network);
    });

  return {
    cover: (network) => (placed?.bridge === bridgeOf(network) ? Promise.resolve() : guarded(() => coverNow(network))),
    look,
    run: async (intervalMs, signal) => {
      if (mode === 'off') {
        const why =
          'CONTAINER_FIREWALL=off: containers reach this host and its network unless rules of yours stop them';
        log.warn('container_firewall_off', { why, remove: `nft delete table inet ${table}` });
        return;
      }
      const lookAndCheck = async (): Promise<void> => {
        await look();
        const checked = check(signal).catch((error: unknown) =>
          log.debug('container_firewall_check_failed', { error }),
        );
        await untilAborted(checked, signal);
      };
      await lookAndCheck();
      await every(() => intervalMs, lookAndCheck, signal);
    },
    state: () => state,
    refusal: () =>
      mode === 'required' && state !== 'unchecked' && state !== 'enforced'
        ? 'the firewall of this host for containers is not in place'
        : undefined,
  };
}
