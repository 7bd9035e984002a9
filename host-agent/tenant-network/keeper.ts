/**
 * Brings the kernel to the desired state, and keeps it there. Each pass reads the actual state and
 * repairs the difference: events of the kernel only wake it, because some changes send none. A
 * failure for one container is reported for that container alone.
 */
import { readFileSync } from 'node:fs';
import Type, { type Static } from 'typebox';
import { messageOf } from '../../lib/error-message.ts';
import { decoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { sleep } from '../../lib/time/backoff.ts';
import type { WireguardKeys } from '../../lib/wireguard-keys.ts';
import { seconds } from '../../schemas/limits/units.ts';
import { resolverAddresses } from '../../schemas/tenant-network.ts';
import {
  containerLink,
  containerSide,
  containerSysctls,
  macOf,
  makeLink,
  routerSide,
  routerSysctls,
  wayOutMac,
  wayOutRouterSide,
  wayOutSide,
  wayOutSysctls,
  withoutPools,
  type Sysctl,
} from './links.ts';
import { Charon, type CharonOptions } from './charon.ts';
import { ikeWanted, type IkeWanted } from './ike.ts';
import { IkeTraffic } from './ike-traffic.ts';
import { linkOf, linkPrefixes, ikeLinkOf, meshLinkOf, vpnLinkOf, wayOutLinkOf } from './link-names.ts';
import { away, meshConfiguration, meshRanges } from './mesh.ts';
import { peersIn, vpnConfiguration } from './vpn.ts';
import { isConfigured, peersChange } from './wireguard.ts';
import { ensureRouter, inRouter, inSandbox, openSandbox } from './namespaces.ts';
import { runTool } from './tools.ts';
import { elementsOf, marksOf, tableChange, wayOutTable, wholeTable, type Elements, type Marks } from './rules.ts';
import type { Attachment, DesiredNetwork, NetworkState, ServedPeers } from '../../schemas/wire/net.ts';

export interface KeeperOptions {
  /** The name of the router namespace, which differs for each cluster and host. */
  readonly router: string;
  /** The folder with the files of the engine's namespaces. */
  readonly namespaces: string;
  /** The keys of this host's end of the mesh. */
  readonly meshKeys: WireguardKeys;
  /** Of strongSwan; undefined: this host serves no IKEv2. */
  readonly viciSocket: string | undefined;
  /** In which traffic by IKEv2 is kept. */
  readonly ikeTrafficFile: string;
  readonly log: Log;
}

const Link = Type.Object({
  ifname: Type.String(),
  flags: Type.Array(Type.String()),
  mtu: Type.Integer(),
  addr_info: Type.Array(Type.Object({ local: Type.Optional(Type.String()) })),
});
type Link = Static<typeof Link>;
/** A pair of interfaces between the router namespace and a sandbox. */
interface SandboxLink {
  /** Of the end in the router namespace. */
  readonly name: string;
  readonly namespace: string;
  /** The hardware address of the end in the sandbox. */
  readonly mac: string;
  /** Input for `ip -batch` for the end in the router namespace, and for that in the sandbox. */
  readonly own: string;
  readonly theirs: string;
  readonly sysctls: readonly Sysctl[];
  /** Rules of nftables for the sandbox. */
  readonly table?: string;
}

interface WireguardLink {
  readonly name: string;
  readonly configuration: string;
  readonly mtu: number;
  readonly routes: readonly string[];
}

/** The configuration that an interface of WireGuard has. */
interface Known {
  readonly text: string;
  /** The time of the last comparison with the interface's own output, by the monotonic clock. */
  readonly comparedMs: number;
  /** The output of the interface at that time; absent if it has been set since. */
  readonly printed?: string;
}

/** The kernel's state as it follows from the desired one. */
interface Drawn {
  readonly of: DesiredNetwork;
  readonly elements: Elements;
  readonly mesh: WireguardLink;
  readonly served: readonly (WireguardLink & { readonly network: string })[];
  readonly ike: IkeWanted;
}

const decodeLinks = decoder(Type.Array(Link));
/** Routes or neighbours; a route that refuses has no link. */
const decodePlaces = decoder(Type.Array(Type.Object({ dst: Type.String(), dev: Type.Optional(Type.String()) })));

/** The arguments of `ip` in one run of a shell, and the line that it prints after each output. */
const looks = ['address', '-4 route', '-6 route', '-4 neigh', '-6 neigh'];
const lookEnd = '--';

/** Prefixes of the interfaces that are deleted when nothing needs them. */
const comeAndGo = [linkPrefixes.container, linkPrefixes.vpn, linkPrefixes.wayOut];

/** The time between two comparisons of a WireGuard interface with its configuration. */
const compareMs = 10 * seconds;

/** The most peers in one command. */
const removedAtOnce = 500;

/** Checks of a wireguard-go that was just started. */
const answerAttempts = 40;
const answerPauseMs = 50;

const setSysctls = (all: readonly (readonly [string, string])[]): string =>
  all.map(([path, value]) => `echo ${value} > /proc/sys/net/${path}`).join(' && ');

export class Keeper {
  readonly #options: KeeperOptions;
  #marks: Marks = new Map();
  /** The last result of `#draw`; a pass costs as much as there are attachments, and not members. */
  #drawn: Drawn | undefined;
  /**
   * The content of the kernel's sets, and its rules as it listed them; `undefined` if the whole
   * table is to be set.
   */
  #table: { readonly elements: Elements; readonly rules: string } | undefined;
  /** The commands for the sides of each link, to find what it lacks. */
  readonly #sides = new Map<string, string>();
  readonly #configurations = new Map<string, Known>();

  readonly #charon: Charon | undefined;
  readonly #ikeTraffic: IkeTraffic;

  constructor(options: KeeperOptions) {
    this.#options = options;
    const { router, viciSocket: socket, ikeTrafficFile, log } = options;
    this.#ikeTraffic = new IkeTraffic(ikeTrafficFile, log);
    const onSeen: CharonOptions['onSeen'] = (seen, isAll) => this.#ikeTraffic.note(seen, isAll);
    this.#charon = socket === undefined ? undefined : new Charon({ socket, router, onSeen, log });
    this.#charon?.start();
  }

  /** Leaves the kernel, and strongSwan, as they are. */
  async stop(): Promise<void> {
    await this.#charon?.stop();
  }

  /** One pass. Throws if nothing at all can be done. */
  async keep(desired: DesiredNetwork): Promise<NetworkState> {
    const { router } = this.#options;
    if ((await ensureRouter(router)) === 'made') {
      this.#table = undefined;
      this.#sides.clear();
      this.#configurations.clear();
      const script = `${setSysctls(routerSysctls)} && ip link set lo up`;
      await runTool(inRouter(router, ['sh', '-c', script]));
    }
    if (this.#drawn?.of !== desired) {
      this.#drawn = this.#draw(desired);
      this.#ikeTraffic.keep(desired.vpn);
    }
    // The rules come first: removed members are cut before anything else.
    await this.#keepRules(this.#drawn);
    this.#charon?.want(this.#drawn.ike);
    return this.#keepLinks(this.#drawn);
  }

  /**
   * The state of the peers of VPN networks, from their interfaces. Throws if one does not answer.
   */
  async peers({ vpn }: DesiredNetwork): Promise<ServedPeers> {
    const { router } = this.#options;
    const served = vpn.filter(({ server }) => server !== null);
    await this.#charon?.look();
    const all = served.map(async ({ name }) => {
      const link = vpnLinkOf(router, name);
      const script = `ip -o link show dev ${link} && wg show ${link} dump`;
      const [shown = '', _interface, ...lines] = (await runTool(inRouter(router, ['sh', '-c', script]))).split('\n');
      return [
        name,
        {
          // The index of an interface is never used again.
          link: `${bootId()} ${shown.split(':', 1)[0]}`,
          peers: peersIn(lines),
        },
      ] as const;
    });
    const looked = await Promise.all(all);
    const added = looked.map(([name, seen]) => [name, this.#ikeTraffic.addTo(name, seen)] as const);
    this.#ikeTraffic.store();
    return Object.fromEntries(added);
  }

  /** The kernel's state for a desired network. */
  #draw(desired: DesiredNetwork): Drawn {
    const { attached, ranges, vpn } = desired;
    const { router, meshKeys } = this.#options;
    this.#marks = marksOf(
      [...attached, ...vpn.flatMap(({ server, peers }) => (server === null ? [] : peers))].map(({ tenant }) => tenant),
      this.#marks,
    );
    const link = meshLinkOf(router);
    const others = away(desired);
    const placed = [
      ...attached.map((attachment) => ({ ...attachment, link: linkOf(attachment), isPeer: false })),
      ...others.map((member) => ({ ...member, link })),
      ...vpn.flatMap(({ name, server, internet: isLetOut = false, peers }) => {
        if (server === null) return [];
        const links = [vpnLinkOf(router, name), ...(this.#charon === undefined ? [] : [ikeLinkOf(router)])];
        return links.flatMap((link) => peers.map((peer) => ({ ...peer, link, isPeer: true, isLetOut })));
      }),
    ];
    const served = vpn.flatMap((network) => {
      const { name, pools: routes, server } = network;
      if (server === null) return [];
      const configuration = vpnConfiguration(network, server);
      return [{ network: name, name: vpnLinkOf(router, name), configuration, mtu: server.mtu ?? desired.mtu, routes }];
    });
    return {
      of: desired,
      elements: elementsOf(placed, allResolvers(ranges), this.#marks, this.#drawn?.elements),
      mesh: {
        name: link,
        configuration: meshConfiguration(desired, others, meshKeys.privateKey),
        mtu: desired.mtu,
        routes: meshRanges(desired),
      },
      served,
      ike: ikeWanted(desired, router),
    };
  }

  async #keepRules({ elements }: Drawn): Promise<void> {
    const mesh = meshLinkOf(this.#options.router);
    const before = this.#table;
    this.#table = undefined;
    if (before !== undefined && before.rules === (await this.#listRules())) {
      const change = tableChange(before.elements, elements);
      try {
        if (change !== '') await this.#nft(change);
        this.#table = { elements, rules: before.rules };
        return;
      } catch (error) {
        // Somebody has changed a set by hand.
        this.#options.log.warn('tenant_network_rules_differ', { error });
      }
    }
    await this.#nft(wholeTable(elements, mesh));
    const rules = await this.#listRules();
    this.#table = rules === undefined ? undefined : { elements, rules };
  }

  #nft(input: string): Promise<string> {
    return runTool(inRouter(this.#options.router, ['nft', '-f', '-']), { input });
  }

  /**
   * The rules without counters, and without the elements, whose listing takes seconds: of the whole
   * namespace, because nft (1.0.6) fetches the elements of a table that it is asked for.
   */
  async #listRules(): Promise<string | undefined> {
    const list = ['nft', '--stateless', '--terse', 'list', 'ruleset', 'inet'];
    return runTool(inRouter(this.#options.router, list)).catch(() => undefined);
  }

  async #keepLinks(drawn: Drawn): Promise<NetworkState> {
    const { router, log } = this.#options;
    const { of: desired } = drawn;
    const { there, places } = await this.#look();
    await this.#keepResolvers(desired, there.get('lo'));
    const wanted = new Map(desired.attached.map((attachment) => [linkOf(attachment), attachment]));
    const served = new Set(drawn.served.map(({ name }) => name));
    const wayOut = desired.way_out && wayOutLinkOf(desired.way_out);
    for (const name of there.keys()) {
      const isOurs = comeAndGo.some((prefix) => name.startsWith(prefix));
      if (!isOurs || wanted.has(name) || served.has(name) || name === wayOut) continue;
      this.#sides.delete(name);
      this.#configurations.delete(name);
      await runTool(['ip', '-n', router, 'link', 'delete', name]).catch((error: unknown) =>
        log.warn('tenant_network_link_left', { link: name, error }),
      );
    }
    const states: NetworkState['attached'] = {};
    for (const [name, attachment] of wanted) {
      try {
        const link: SandboxLink = {
          name,
          namespace: attachment.namespace,
          mac: macOf(attachment.id),
          own: routerSide(attachment),
          theirs: containerSide(attachment, desired),
          sysctls: containerSysctls,
        };
        await this.#keepLink(link, there.get(name), desired.mtu, isPlaced(attachment, places));
        states[attachment.id] = null;
      } catch (error) {
        states[attachment.id] = messageOf(error);
      }
    }
    const vpn: NetworkState['vpn'] = {};
    for (const { network, ...wanted } of drawn.served)
      vpn[network] =
        (await this.#keepWireguard(there.get(wanted.name), wanted, places)) ?? this.#whyNoIke(drawn, network);
    const mesh = await this.#keepMesh(drawn, there.get(drawn.mesh.name), places);
    const noWayOut = await this.#keepWayOut(desired, there, places);
    return { attached: states, mesh, vpn, ...(noWayOut === null ? {} : { way_out: noWayOut }) };
  }

  /** Of the last turn: what it is to do now may take longer than a pass. */
  #whyNoIke({ ike }: Drawn, network: string): string | null {
    const message = ike.networks.includes(network) ? this.#charon?.message : undefined;
    return message === undefined || message === null ? null : `no IKEv2: ${message}`;
  }

  /** @returns why it does not work */
  async #keepWayOut(
    { way_out: wanted, ranges, vpn, mtu }: DesiredNetwork,
    there: ReadonlyMap<string, Link>,
    places: ReadonlySet<string>,
  ): Promise<string | null> {
    if (wanted === undefined) return null;
    const name = wayOutLinkOf(wanted);
    const isLetOut = vpn.filter(({ server, internet }) => server !== null && internet === true);
    const pools = isLetOut.flatMap((network) => network.pools.filter((pool) => !pool.includes(':')));
    const link: SandboxLink = {
      name,
      namespace: wanted.namespace,
      mac: wayOutMac,
      own: wayOutRouterSide(name, ranges),
      theirs: wayOutSide(pools),
      sysctls: wayOutSysctls,
      table: wayOutTable,
    };
    try {
      await this.#keepLink(link, there.get(name), mtu, places.has(`route default ${name}`));
      return null;
    } catch (error) {
      return messageOf(error);
    }
  }

  /** Makes the link of a sandbox, or repairs both of its ends. */
  async #keepLink(
    { name, namespace, mac, own, theirs, sysctls, table }: SandboxLink,
    link: Link | undefined,
    mtu: number,
    isPlaced: boolean,
  ): Promise<void> {
    const { router } = this.#options;
    // The kernel sets `operstate` as much as a second later, and a pass may come before.
    const isUp = link?.flags.includes('UP') === true && link.flags.includes('LOWER_UP') && link.mtu === mtu;
    if (isUp && isPlaced && this.#sides.get(name) === own + theirs) return;
    this.#sides.delete(name);
    await this.#inSandbox(namespace, async (enter) => {
      if (!isUp) {
        if (link !== undefined) await runTool(['ip', '-n', router, 'link', 'delete', name]);
        // An earlier run of this program, or another agent, may have left an interface in it.
        await enter(inSandbox(['sh', '-c', `ip link delete ${containerLink} 2>/dev/null || true`]), '');
        await enter(['ip', '-n', router, '-batch', '-'], makeLink(name, mac, '/proc/self/fd/3', mtu));
      }
      await enter(inSandbox(['sh', '-c', `${setSysctls(sysctls)} && ${withoutPools} && exec ip -batch -`]), theirs);
      if (table !== undefined) await enter(inSandbox(['nft', '-f', '-']), table);
    });
    await runTool(['ip', '-n', router, '-batch', '-'], { input: own });
    this.#sides.set(name, own + theirs);
  }

  /** Opens the namespace of a sandbox, and runs commands that have it as their descriptor 3. */
  async #inSandbox(
    namespace: string,
    work: (enter: (command: readonly string[], input: string) => Promise<string>) => Promise<void>,
  ): Promise<void> {
    const { router, namespaces } = this.#options;
    const sandbox = openSandbox(namespace, namespaces, router);
    try {
      await work((command, input) => runTool(command, { input, namespace: sandbox.descriptor }));
    } finally {
      sandbox.close();
    }
  }

  /** The containers of this host are attached even if the mesh does not work. */
  async #keepMesh(
    { of: desired, mesh: wanted }: Drawn,
    link: Link | undefined,
    places: ReadonlySet<string>,
  ): Promise<NetworkState['mesh']> {
    const { router, meshKeys } = this.#options;
    const { name } = wanted;
    if (desired.mesh === null) {
      this.#configurations.delete(name);
      if (link !== undefined) await runTool(['ip', '-n', router, 'link', 'delete', name]);
      return null;
    }
    return { key: meshKeys.publicKey, message: await this.#keepWireguard(link, wanted, places) };
  }

  /**
   * Makes the interface and its routes, or repairs them.
   * @returns the reason why it does not work
   */
  async #keepWireguard(
    link: Link | undefined,
    { name, configuration, mtu, routes }: WireguardLink,
    places: ReadonlySet<string>,
  ): Promise<string | null> {
    const { router } = this.#options;
    try {
      if (link === undefined) {
        this.#configurations.delete(name);
        await makeWireguardLink(router, name);
      }
      if (!(await this.#isConfigured(name, configuration))) await this.#configure(name, configuration);
      const isMissing = (range: string): boolean => link === undefined || !places.has(`route ${range} ${name}`);
      const missing = routes.filter(isMissing);
      const lines = [`link set ${name} mtu ${mtu} up`, ...missing.map((range) => `route replace ${range} dev ${name}`)];
      const isWhole = link?.mtu === mtu && missing.length === 0;
      if (!isWhole) await runTool(['ip', '-n', router, '-batch', '-'], { input: `${lines.join('\n')}\n` });
      return null;
    } catch (error) {
      return messageOf(error);
    }
  }

  /** Sets the peers that have changed, if the interface's configuration is known. */
  async #configure(name: string, configuration: string): Promise<void> {
    const known = this.#configurations.get(name);
    this.#configurations.delete(name);
    const changed = known === undefined ? undefined : peersChange(known.text, configuration);
    // A command has a greatest length.
    const change = (changed?.removed.length ?? 0) > removedAtOnce ? undefined : changed;
    const removed = (change?.removed ?? []).flatMap((key) => ['peer', key, 'remove']);
    const [verb, input] = change === undefined ? ['syncconf', configuration] : ['addconf', change.added];
    // Node gives a socket as the standard input, which no program can open by name.
    const commands = [
      ...(removed.length === 0 ? [] : [`wg set ${name} ${removed.join(' ')}`]),
      ...(input === '' ? [] : [`cat | wg ${verb} ${name} /dev/stdin`]),
    ];
    await runTool(inRouter(this.#options.router, ['sh', '-c', commands.join(' && ')]), { input });
    this.#configurations.set(name, { text: configuration, comparedMs: known?.comparedMs ?? performance.now() });
  }

  /**
   * `true` if the interface has its configuration. Setting it again could cost a packet, so the
   * interface of an earlier run is compared first; and each one is compared now and then, because
   * somebody may have changed it by hand.
   */
  async #isConfigured(name: string, configuration: string): Promise<boolean> {
    const known = this.#configurations.get(name);
    if (known !== undefined && known.text !== configuration) return false;
    const comparedMs = performance.now();
    if (known !== undefined && comparedMs - known.comparedMs < compareMs) return true;
    const there = await runTool(inRouter(this.#options.router, ['wg', 'showconf', name])).catch(() => '');
    const hasEndpoints = known === undefined;
    const isSame = known?.printed !== undefined && known.printed === there;
    if (!isSame && !isConfigured(there, configuration, hasEndpoints)) {
      this.#configurations.delete(name);
      return false;
    }
    this.#configurations.set(name, { text: configuration, comparedMs, printed: there });
    return true;
  }

  /** The addresses at which the resolvers of the host listen. */
  async #keepResolvers({ ranges }: DesiredNetwork, loopback: Link | undefined): Promise<void> {
    const has = new Set(loopback?.addr_info.map(({ local }) => local));
    const missing = allResolvers(ranges).filter((address) => !has.has(address));
    if (missing.length === 0) return;
    const input = missing.map((address) => `addr replace ${address} dev lo\n`).join('');
    await runTool(['ip', '-n', this.#options.router, '-batch', '-'], { input });
  }

  /**
   * The interfaces of the router namespace by name, and its routes and neighbours as `<kind>
   * <address> <interface>`: the kernel sends no event for an IPv4 route that goes with its link.
   */
  async #look(): Promise<{ there: Map<string, Link>; places: ReadonlySet<string> }> {
    const script = looks.map((what) => `ip -j ${what} show && echo ${lookEnd}`).join(' && ');
    const printed = await runTool(inRouter(this.#options.router, ['sh', '-c', script]));
    const [links = '', ...others] = printed.split(`${lookEnd}\n`).map((text) => text.trim());
    const placesIn = (text: string, at: number): string[] => {
      const kind = at < 2 ? 'route' : 'neigh';
      const places = text === '' ? [] : decodePlaces(Buffer.from(text));
      return places.map(({ dst, dev = '' }) => `${kind} ${dst} ${dev}`);
    };
    return {
      there: new Map(decodeLinks(Buffer.from(links)).map((link) => [link.ifname, link])),
      places: new Set(others.flatMap(placesIn)),
    };
  }
}

/**
 * Makes the interface in the host's namespace, where its socket stays, and moves it. If the kernel
 * has no WireGuard, wireguard-go does the same in a process, which outlives this one.
 */
async function makeWireguardLink(router: string, name: string): Promise<void> {
  // An earlier run may have left one that it did not move.
  await runTool(['ip', 'link', 'delete', name]).catch(() => '');
  try {
    await runTool(['ip', 'link', 'add', name, 'type', 'wireguard']);
  } catch (kernel) {
    // With LOG_LEVEL, which is also a setting of ours, it keeps the pipes of its output open.
    await runTool(['env', '-u', 'LOG_LEVEL', 'wireguard-go', name]).catch((error: unknown) => {
      throw new AggregateError([kernel, error], `there is no WireGuard: ${messageOf(kernel)}; ${messageOf(error)}`);
    });
    await isAnswering(name);
  }
  await runTool(['ip', 'link', 'set', name, 'netns', router]);
}

/** Waits until wireguard-go takes configurations: it returns before its process does. */
async function isAnswering(name: string): Promise<void> {
  for (let attempt = 1; attempt < answerAttempts; attempt++) {
    const isThere = await runTool(['wg', 'show', name, 'listen-port']).then(
      () => true,
      () => false,
    );
    if (isThere) return;
    await sleep(answerPauseMs);
  }
}

/** The id of this start of the machine. */
const bootId = (): string => readFileSync('/proc/sys/kernel/random/boot_id', 'utf8').trim();

const allResolvers = ({ ipv4, ipv6 }: DesiredNetwork['ranges']): string[] =>
  ([0, 1] as const).flatMap((which) => resolverAddresses([ipv4, ipv6], which));

function isPlaced(attachment: Attachment, places: ReadonlySet<string>): boolean {
  const { ipv4, ipv6 } = attachment;
  const link = linkOf(attachment);
  const addresses = ipv4 === null ? [ipv6] : [ipv4, ipv6];
  return addresses.every((address) => places.has(`route ${address} ${link}`) && places.has(`neigh ${address} ${link}`));
}
