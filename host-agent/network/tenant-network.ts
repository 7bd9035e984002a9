/**
 * The agent's side of the tenant network (ADR 51). It sends `longshore-net` the sandboxes to
 * attach, always all of them, and keeps the state that the program returns for each.
 */
import { chmodSync, mkdirSync, writeFileSync } from 'node:fs';
import { dirname } from 'node:path';
import { isDeepStrictEqual } from 'node:util';
import Type from 'typebox';
import { decoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { createNotify } from '../../lib/notify.ts';
import { sleep, within } from '../../lib/time/backoff.ts';
import type { NetworkSeen } from '../../schemas/api/container.ts';
import type { ContainerId, HostKey, PeerId, TenantId } from '../../schemas/ids.ts';
import { parseCidr } from '../../schemas/cidr.ts';
import { limits } from '../../schemas/limits.ts';
import { internalDomain, ipv6Of, ipv6RangeOf, resolverAddresses } from '../../schemas/tenant-network.ts';
import type { DesiredContainer } from '../../schemas/wire/host.ts';
import { isPeer, type ContainerMember, type PeerMember } from '../../schemas/wire/members.ts';
import type { HostEnd, MeshEnd } from '../../schemas/wire/mesh.ts';
import type { NetworkServer } from '../../schemas/wire/network-server.ts';
import type { Inspection } from '../docker/answers.ts';
import type { BindMount } from '../docker/calls/containers.ts';
import type { Engine } from '../docker/engine.ts';
import { detailOf, EngineError, isUnreachable } from '../docker/errors.ts';
import { resolvConfPath } from '../docker/observed.ts';
import { isApart, sandboxLabel } from '../docker/ownership.ts';
import { createTransport, type Transport } from '../docker/transport.ts';
import type { Faults } from '../faults.ts';
import { overlapOf, type HostNetworks } from './range-overlap.ts';
import { vpnOf, type KnownSecrets } from './vpn.ts';
import {
  NetworkState,
  ServedPeers,
  type Attachment,
  type DesiredNetwork,
  type NamedMember,
  type VpnNetwork,
} from '../../schemas/wire/net.ts';
import { hours, seconds } from '../../schemas/limits/units.ts';

/** The time of a call of `longshore-net`. */
const netCallMs = 10 * seconds;
/** The time that a start waits for `longshore-net` to be there, and between two attempts. */
const netPatienceMs = 2 * seconds;
const netRetryMs = 100;
/** The wait of a new agent for the keys of peers that an earlier one let in. */
const vpnKeysPatienceMs = 15 * seconds;
/** The longest wait for the end of a peer, which may be later than a timer can count. */
const vpnEndLookMs = 1 * hours;

const decodeAnswer = decoder(NetworkState);
const decodePeers = decoder(ServedPeers);
const decodeRefusal = decoder(Type.Object({ message: Type.String() }));

/** The network as the owners describe it (desired/members.ts). */
export interface KnownNetwork {
  all(): Iterable<ContainerMember | PeerMember>;
  /** The ends of the mesh, in the order in which they became known. */
  ends(): Iterable<HostEnd>;
  /** The range of the containers' IPv4 addresses; `undefined` if containers have none. */
  range(): string | undefined;
  /** Hosts that serve VPN networks. */
  servers(): Iterable<NetworkServer>;
}

/** A VPN peer, as the interface of its network shows it. */
export type ServedPeer = ServedPeers[string]['peers'][number] & {
  /** `undefined` if its tenant, or its key, is not known here yet. */
  readonly of: { readonly tenant: TenantId; readonly id: PeerId } | undefined;
  /** A name of the interface that differs each time that it is made. */
  readonly link: string;
};

/** A container that is to be attached. */
export interface Attaching {
  readonly id: ContainerId;
  readonly tenant: TenantId;
}

export interface TenantNetworkParts {
  readonly cluster: string;
  readonly host: HostKey;
  /** The socket of `longshore-net`. */
  readonly socket: string;
  readonly mtu: number;
  /** The address of this host for other hosts; `undefined` if it is in no mesh. */
  readonly meshAt: Omit<MeshEnd, 'key'> | undefined;
  /** The file that containers have as /etc/resolv.conf. */
  readonly resolvConf: string;
  readonly engine: Pick<Engine, 'inspect'>;
  /** The sandbox by which VPN peers reach the internet (sandboxes.ts). */
  readonly wayOut: (isWanted: boolean) => Promise<string | undefined>;
  /** The networks that this host itself uses. */
  readonly networks: () => HostNetworks;
  /** The keys of the VPN networks that this host serves. */
  readonly vpnKeys: KnownSecrets;
  /**
   * Resolves when the arguments of `name` are on disk: an agent that begins again must not bring
   * back members that were removed, nor cut those that were added.
   */
  readonly kept: () => Promise<void>;
  /** Is called with the current state of all VPN peers that this host serves. */
  readonly onPeers: (peers: readonly ServedPeer[]) => void;
  /** Wall time. */
  readonly nowMs: () => number;
  readonly faults: Pick<Faults, 'restate' | 'clear'>;
  /** The network state of this container has changed. */
  readonly onChange: (id: ContainerId) => void;
  readonly log: Log;
}

export class TenantNetwork {
  readonly #parts: TenantNetworkParts;
  readonly #transport: Transport;
  readonly #attached = new Map<ContainerId, Attachment>();
  #members: ReadonlyMap<ContainerId, NamedMember> = new Map();
  /** The ends of other hosts. */
  #ends: readonly HostEnd[] = [];
  #peers: readonly PeerMember[] = [];
  #servers: readonly NetworkServer[] = [];
  #vpn: readonly VpnNetwork[] = [];
  #wayOut: DesiredNetwork['way_out'];
  #keepingWayOut: Promise<void> = Promise.resolve();
  /** The reason why there is no sandbox to lead out; `undefined` if none is known. */
  #noWayOut: string | undefined;
  #looking: Promise<void> = Promise.resolve();
  /**
   * Peers that may connect, by network and public key: as decided, and as `longshore-net` has it.
   */
  #toLetIn: ReadonlyMap<string, PeerMember> = new Map();
  #letIn: ReadonlyMap<string, PeerMember> = new Map();
  #nextEnd: NodeJS.Timeout | undefined;
  #meshKey: string | undefined;
  /** The range of the containers' IPv4 addresses; `null` if containers have none. */
  #range: string | null = null;
  /** The same range; `null` if this host itself uses addresses of it. */
  #usable: string | null = null;
  /** The attached containers, each with the reason if it could not be attached. */
  readonly #said = new Map<ContainerId, string | null>();
  /**
   * `true` after the first list of the engine: until then this agent does not know which containers
   * its last run has attached.
   */
  #isKnown = false;
  readonly #known = createNotify();
  #hasAnswered = false;
  readonly #answered = createNotify();
  #sending: Promise<void> = Promise.resolve();
  #next: Promise<void> | undefined;

  constructor(parts: TenantNetworkParts) {
    this.#parts = parts;
    writeResolvConf(parts);
    this.#transport = createTransport({ kind: 'unix', socketPath: parts.socket }, () => {});
  }

  /**
   * Attaches the running sandbox of a container. Resolves when the network is there, and also if it
   * cannot be: the container then starts without it.
   */
  async attach(container: Attaching, sandbox: string): Promise<void> {
    if (!this.#isKnown) await this.#known.wait(netPatienceMs);
    if (await this.#note(container, sandbox)) await this.#send(netPatienceMs);
    else await (this.#next ?? this.#sending);
  }

  /** The container has left this host. */
  detach(id: ContainerId): void {
    if (this.#forget(id)) void this.#send();
  }

  /**
   * Is called after each list of the engine: adopts the running containers, also of an earlier
   * agent, and sends them again.
   * @param users containers, and the sandboxes that they are in
   * @param isWanted `true` if a container that is in none may get one
   */
  async look(
    users: ReadonlyMap<ContainerId, string>,
    tenantOf: (id: ContainerId) => TenantId | undefined,
    isWanted: (id: ContainerId) => boolean,
  ): Promise<void> {
    for (const id of this.#attached.keys()) {
      if (!users.has(id) && !isWanted(id)) this.#forget(id);
    }
    for (const [id, sandbox] of users) {
      const tenant = tenantOf(id);
      if (tenant !== undefined) await this.#note({ id, tenant }, sandbox);
    }
    this.#judgeRange();
    this.#drawVpn();
    if (!this.#isKnown) {
      // Without their keys, peers that an earlier run of the agent let in would be disconnected.
      await this.#parts.vpnKeys.tried(vpnKeysPatienceMs);
      this.#drawVpn();
    }
    this.#isKnown = true;
    this.#known.notify();
    await this.#keepWayOut();
    await this.#send();
  }

  /**
   * One at a time: two would make two sandboxes. Not before the first look, which finds the one of
   * an earlier agent.
   */
  #keepWayOut(): Promise<void> {
    if (!this.#isKnown) return Promise.resolve();
    return (this.#keepingWayOut = this.#keepingWayOut.then(async () => {
      const isWanted = this.#vpn.some(({ server, internet }) => server !== null && internet === true);
      try {
        const sandbox = await this.#parts.wayOut(isWanted);
        this.#wayOut = sandbox === undefined ? undefined : runIn(await this.#parts.engine.inspect(sandbox));
        this.#noWayOut = undefined;
      } catch (error) {
        this.#wayOut = undefined;
        this.#noWayOut = detailOf(error);
      }
    }));
  }

  /**
   * Names resolve to all members of the tenants that have containers here. An owner of the last
   * release gives no members: then names resolve to the containers of this host.
   */
  name(
    known: KnownNetwork,
    own: Iterable<Pick<DesiredContainer, 'id' | 'tenant' | 'name' | 'desired' | 'network'>>,
  ): void {
    const { cluster, host: here } = this.#parts;
    const named = new Map<ContainerId, NamedMember>();
    const add = (member: ContainerMember): void => {
      const { id, ipv4 = null } = member;
      named.set(id, { ...member, ipv4, ipv6: ipv6Of(cluster, id) });
    };
    const peers: PeerMember[] = [];
    for (const member of known.all()) {
      if (isPeer(member)) peers.push(member);
      else add(member);
    }
    for (const { id, tenant, name, desired, network } of own)
      if (desired !== 'removed' && network?.mode !== 'none' && !named.has(id)) add({ id, tenant, name, host: here });
    const others = [...known.ends()].filter(({ host }) => host !== here);
    // Most changes of the desired set do not change a name.
    const range = known.range() ?? null;
    const servers = [...known.servers()];
    const before = [this.#members, this.#ends, this.#range, this.#peers, this.#servers];
    if (isDeepStrictEqual([named, others, range, peers, servers], before)) return;
    this.#members = named;
    this.#peers = peers;
    this.#servers = servers;
    this.#drawVpn();
    void this.#keepWayOut().then(() => this.#send());
    if (range !== this.#range) {
      this.#range = range;
      this.#judgeRange();
    }
    this.#ends = others;
    void this.#send();
  }

  /**
   * Mounts of a container that is to ask the resolvers of its host. Empty if `longshore-net` has
   * never answered, and does not answer soon: if it cannot work, a container would have no name
   * server at all.
   */
  async mounts(): Promise<BindMount[]> {
    if (!this.#hasAnswered) await this.#answered.wait(netPatienceMs);
    if (!this.#hasAnswered) return [];
    return [{ Type: 'bind', Source: this.#parts.resolvConf, Target: resolvConfPath, ReadOnly: true }];
  }

  /** `undefined` if it was never to be attached. */
  seen(id: ContainerId): NetworkSeen | undefined {
    const said = this.#said.get(id);
    if (said === undefined) return undefined;
    return said === null ? { state: 'ready', message: null } : { state: 'unavailable', message: said };
  }

  /** This host's end of the mesh; `undefined` if there is none. */
  end(): MeshEnd | undefined {
    const { meshAt } = this.#parts;
    return meshAt === undefined || this.#meshKey === undefined ? undefined : { key: this.#meshKey, ...meshAt };
  }

  /**
   * Reads the state of the peers that this host serves. Rejects if `longshore-net` does not answer.
   * One call at a time: an older answer after a newer one would look like counters that began
   * again.
   */
  lookAtPeers(): Promise<void> {
    return (this.#looking = this.#looking.catch(() => {}).then(() => this.#lookAtPeers()));
  }

  async #lookAtPeers(): Promise<void> {
    const { status, body } = await this.#transport.call({
      name: 'tenant network',
      method: 'GET',
      path: '/peers',
      deadlineMs: netCallMs,
    });
    if (status !== 200)
      throw new EngineError('tenant network', { kind: 'refused', status }, decodeRefusal(body).message);
    const members = new Map([...this.#letIn, ...this.#toLetIn]);
    const seen = Object.entries(decodePeers(body)).flatMap(([network, { link, peers }]) =>
      peers.map((peer): ServedPeer => ({ ...peer, link, of: members.get(`${network} ${peer.key}`) })),
    );
    this.#parts.onPeers(seen);
  }

  close(): void {
    clearTimeout(this.#nextEnd);
    this.#transport.close();
  }

  /**
   * Decides the VPN networks and peers for the kernel; again when a key comes, or when a peer ends.
   */
  #drawVpn(): void {
    const { host: here, vpnKeys, nowMs } = this.#parts;
    const { networks, secrets, nextEndMs } = vpnOf({
      here,
      servers: this.#servers,
      peers: this.#peers,
      secretOf: (key) => vpnKeys.of(key),
      nowMs: nowMs(),
    });
    this.#vpn = networks;
    this.#toLetIn = this.#drawLetIn();
    const again = (): void => {
      this.#drawVpn();
      void this.#keepWayOut().then(() => this.#send());
    };
    vpnKeys.want(secrets, again);
    clearTimeout(this.#nextEnd);
    if (nextEndMs === undefined) return;
    this.#nextEnd = setTimeout(again, Math.min(nextEndMs - nowMs() + 1, vpnEndLookMs)).unref();
  }

  /**
   * A container that is to be in no network has a sandbox that never was in one (sandbox/shape.ts).
   * @returns `true` if something has changed
   */
  async #note({ id, tenant }: Attaching, sandbox: string): Promise<boolean> {
    const inspection = await this.#parts.engine.inspect(sandbox);
    if (isApart(sandboxLabel(inspection?.Config.Labels) ?? '')) return this.#forget(id);
    const running = runIn(inspection);
    if (running === undefined || this.#attached.get(id)?.run === running.run) return false;
    const ipv6 = ipv6Of(this.#parts.cluster, id);
    this.#attached.set(id, { id, tenant, ...running, ipv4: null, ipv6 });
    // The state was that of the run before.
    this.#said.delete(id);
    return true;
  }

  /** @returns `true` if it was attached */
  #forget(id: ContainerId): boolean {
    this.#said.delete(id);
    return this.#attached.delete(id);
  }

  /** One message at a time; changes while one is under way are in the next. */
  #send(patienceMs = 0): Promise<void> {
    if (!this.#isKnown) return Promise.resolve();
    return (this.#next ??= this.#sending.then(() => {
      this.#next = undefined;
      return (this.#sending = this.#sendNow(patienceMs));
    }));
  }

  async #sendNow(patienceMs: number): Promise<void> {
    const endMs = performance.now() + patienceMs;
    for (;;) {
      try {
        await this.#putCounted();
        return;
      } catch (error) {
        if (isUnreachable(error) && performance.now() < endMs) {
          // The program may be starting.
          await sleep(netRetryMs);
          continue;
        }
        this.#failed(error);
        return;
      }
    }
  }

  /** A peer's counters in the kernel vanish with it, so they are read before and after. */
  async #putCounted(): Promise<void> {
    const isAnyCut = [...this.#letIn.keys()].some((key) => !this.#toLetIn.has(key));
    const look = (): Promise<void> =>
      this.lookAtPeers().catch((error: unknown) => this.#parts.log.debug('peers_look_failed', { error }));
    if (isAnyCut) await look();
    const next = this.#toLetIn;
    const state = await this.#put();
    this.#letIn = next;
    this.#applyState(state);
    if (isAnyCut) await look();
  }

  /** Peers that may connect to this host, by network and public key. */
  #drawLetIn(): ReadonlyMap<string, PeerMember> {
    const members = new Map(this.#peers.map((peer) => [`${peer.network} ${peer.key}`, peer]));
    const served = this.#vpn.filter(({ server }) => server !== null);
    return new Map(
      served.flatMap(({ name, peers }) =>
        peers.flatMap(({ key, preshared_key: preshared }): [string, PeerMember][] => {
          const member = members.get(`${name} ${key}`);
          return preshared === null || member === undefined ? [] : [[`${name} ${key}`, member]];
        }),
      ),
    );
  }

  async #put(): Promise<NetworkState> {
    const { cluster, host, meshAt, mtu, kept, log } = this.#parts;
    const ipv4 = this.#usable;
    const members = Array.from(this.#members.values(), (member) => (ipv4 === null ? { ...member, ipv4 } : member));
    const desired: DesiredNetwork = {
      v: 1,
      // Names this agent, as no other is named.
      owner: `${host} in ${cluster}`,
      ranges: { ipv4, ipv6: ipv6RangeOf(cluster) },
      mtu,
      attached: Array.from(this.#attached.values(), (attachment) => ({
        ...attachment,
        ipv4: ipv4 === null ? null : (this.#members.get(attachment.id)?.ipv4 ?? null),
      })),
      members,
      vpn: [...this.#vpn],
      ...(this.#wayOut === undefined ? {} : { way_out: this.#wayOut }),
      mesh: meshAt === undefined ? null : { port: meshAt.port, ends: [...this.#ends] },
    };
    await within(kept(), netCallMs, 'members on disk').catch((error: unknown) =>
      log.warn('members_flush_failed', { error }),
    );
    const { status, body } = await this.#transport.call({
      name: 'tenant network',
      method: 'PUT',
      path: '/network',
      body: { type: 'application/json', bytes: Buffer.from(JSON.stringify(desired)) },
      deadlineMs: netCallMs,
    });
    if (status === 200) return decodeAnswer(body);
    throw new EngineError('tenant network', { kind: 'refused', status }, decodeRefusal(body).message);
  }

  /** While the range is not usable, containers of this host have no IPv4 in the tenant network. */
  #judgeRange(): void {
    const range = this.#range === null ? undefined : parseCidr(this.#range);
    const found = range && overlapOf(range, this.#parts.networks());
    if (found === undefined) {
      this.#parts.faults.clear('tenant_range_overlaps');
      this.#usable = this.#range;
      return;
    }
    const message = `TENANT_IPV4 is ${this.#range}, and ${found}: containers here get no IPv4 in the tenant network`;
    this.#parts.faults.restate('tenant_range_overlaps', message);
    this.#usable = null;
  }

  #applyState({ attached, mesh, vpn, way_out: noWayOut = this.#noWayOut }: NetworkState): void {
    const { faults, vpnKeys } = this.#parts;
    this.#hasAnswered = true;
    this.#answered.notify();
    faults.clear('tenant_network');
    this.#meshKey = mesh?.key;
    if (mesh === null || mesh.message === null) faults.clear('mesh');
    else faults.restate('mesh', `containers of other hosts are not reached: ${mesh.message}`);
    const broken = Object.entries(vpn).flatMap(([name, why]) => (why === null ? [] : [`${name}: ${why}`]));
    if (noWayOut !== undefined) broken.push(`their peers do not reach the internet: ${noWayOut}`);
    if (vpnKeys.why !== undefined) broken.push(`keys are lacking: ${vpnKeys.why}`);
    if (broken.length === 0) faults.clear('vpn_server');
    else faults.restate('vpn_server', `VPN networks that this host serves: ${broken.join('; ')}`);
    for (const id of this.#attached.keys()) {
      const news = attached[id];
      if (news !== undefined) this.#say(id, news);
    }
  }

  /** Attached containers stay attached. */
  #failed(error: unknown): void {
    const { socket, faults } = this.#parts;
    const detail = detailOf(error);
    faults.restate('tenant_network', `longshore-net does not keep the tenant network (${socket}): ${detail}`);
    const why = `longshore-net on its host does not answer: ${detail}`.slice(0, limits.observationMessageChars);
    for (const id of this.#attached.keys()) if (!this.#said.has(id)) this.#say(id, why);
  }

  #say(id: ContainerId, news: string | null): void {
    if (this.#said.get(id) === news) return;
    this.#said.set(id, news);
    if (news !== null) this.#parts.log.warn('tenant_network_missing', { container: id, why: news });
    this.#parts.onChange(id);
  }
}

/** The run of a sandbox, and its namespace; `undefined` if it does not run. */
function runIn(inspection: Inspection | undefined): NonNullable<DesiredNetwork['way_out']> | undefined {
  const namespace = inspection?.NetworkSettings.SandboxKey ?? '';
  if (inspection?.State.Status !== 'running' || namespace === '') return undefined;
  return { namespace, run: `${inspection.Id}:${inspection.State.StartedAt}` };
}

/**
 * A resolv.conf(5) of our own in place of the engine's DNS, which dies with the engine, and knows
 * the names of other tenants' sandboxes.
 */
function writeResolvConf({ resolvConf, cluster }: TenantNetworkParts): void {
  const resolvers = ([0, 1] as const).flatMap((which) => resolverAddresses([ipv6RangeOf(cluster)], which));
  const lines = [
    ...resolvers.map((address) => `nameserver ${address}`),
    `search ${internalDomain}`,
    'options timeout:1 attempts:2',
  ];
  mkdirSync(dirname(resolvConf), { recursive: true, mode: 0o700 });
  writeFileSync(resolvConf, `${lines.join('\n')}\n`);
  // Every user of a container reads it, whatever the agent's umask is.
  chmodSync(resolvConf, 0o644);
}
