/**
 * The members of the tenants that have containers here, or peers in a VPN network that this host
 * serves; the ends of the mesh on their hosts, and the servers of their networks. They are as the
 * owners gave them: in memory, and on disk for a start without the control plane. An older answer
 * never takes the place of a newer one. A list that differs from its owner's is kept, and asked for
 * as a whole.
 */
import { EventEmitter } from 'node:events';
import { join } from 'node:path';
import Type, { type Static } from 'typebox';
import { decoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import type { HostKey, NetworkName, TenantId } from '../../schemas/ids.ts';
import { seconds } from '../../schemas/limits/units.ts';
import type { SyncAsk } from '../../schemas/wire/host.ts';
import { byTenant, digestOfMembers, isPeer, Member } from '../../schemas/wire/members.ts';
import { HostEnd } from '../../schemas/wire/mesh.ts';
import { NetworkServer } from '../../schemas/wire/network-server.ts';
import { basisIn } from '../../schemas/wire/set-digest.ts';
import { partitionOf } from '../../schemas/wire/subjects.ts';
import { createLazyFile, readDecoded, type LazyFile } from '../disk/files.ts';
import type { StateDisk } from '../disk/state-disk.ts';
import { isOlder, type MembersAnswer } from './desired-set.ts';

const flushMs = 1 * seconds;

const Count = Type.Integer({ minimum: 0 });
const Kept = Type.Object({
  v: Type.Literal(1),
  cluster: Type.String(),
  tenants: Type.Array(
    Type.Object({
      epoch: Count,
      revision: Count,
      digest: Type.String(),
      mesh: Type.String(),
      members: Type.Array(Member),
    }),
  ),
  ends: Type.Array(HostEnd),
  servers: Type.Optional(Type.Array(NetworkServer)),
  ipv4: Type.Optional(Type.String()),
});
type Kept = Static<typeof Kept>;
const decodeKept = decoder(Kept);

/** Members of one tenant. */
interface Held {
  readonly epoch: number;
  readonly revision: number;
  /** Empty if this agent has lost a change. */
  readonly digest: string;
  /** The digest of the newest ends of the mesh, as their owner computes it. */
  readonly mesh: string;
  readonly members: ReadonlyMap<Member['id'], Member>;
}

export class TenantMembers {
  readonly events = new EventEmitter<{ changed: [] }>();
  readonly #log: Log;
  readonly #file: LazyFile;
  readonly #held: Map<TenantId, Held>;
  /** The known ends of hosts that have members; the ones known longest come first. */
  readonly #ends: Map<HostKey, HostEnd>;
  /** Hosts that serve VPN networks of these tenants. */
  readonly #servers: Map<NetworkName, NetworkServer>;
  #range: string | undefined;

  private constructor(path: string, cluster: string, kept: Kept | undefined, disk: StateDisk, log: Log) {
    this.#held = new Map();
    for (const { members, ...version } of kept?.tenants ?? []) {
      const [first] = members;
      if (first !== undefined) this.#held.set(first.tenant, { ...version, members: byId(members) });
    }
    this.#ends = new Map(kept?.ends.map((end) => [end.host, end]));
    this.#servers = new Map(kept?.servers?.map((server) => [server.network, server]));
    this.#range = kept?.ipv4;
    const content = (): Kept => {
      const tenants = Array.from(this.#held.values(), (held) => ({ ...held, members: [...held.members.values()] }));
      const range = this.#range === undefined ? {} : { ipv4: this.#range };
      return { v: 1, cluster, tenants, ends: [...this.#ends.values()], servers: [...this.#servers.values()], ...range };
    };
    this.#file = createLazyFile(path, () => JSON.stringify(content()), flushMs, disk);
    this.#log = log;
  }

  static async load(stateDir: string, cluster: string, disk: StateDisk, log: Log): Promise<TenantMembers> {
    const path = join(stateDir, 'members.json');
    const kept = await readDecoded(path, decodeKept, log);
    return new TenantMembers(path, cluster, kept?.cluster === cluster ? kept : undefined, disk, log);
  }

  /**
   * The versions of the members that an ask for these partitions names.
   * @param only `undefined` for all partitions
   */
  asked(only: readonly number[] | undefined, partitions: number | null): NonNullable<SyncAsk['members']> {
    const isAsked = (tenant: TenantId): boolean =>
      only === undefined || partitions === null || only.includes(partitionOf(tenant, partitions));
    const named = [...this.#held].filter(([tenant]) => isAsked(tenant));
    return Object.fromEntries(
      named.map(([tenant, { epoch, revision, digest, mesh }]) => [tenant, [epoch, revision, digest, mesh]] as const),
    );
  }

  apply({ epoch, tenants, members, gone, mesh: ends, servers, tenantsGone }: MembersAnswer): void {
    const given = byTenant(members);
    const left = byTenant(gone);
    let isNews = false;
    for (const tenant of tenantsGone) {
      const held = this.#held.get(tenant);
      if (held !== undefined && held.epoch <= epoch) isNews = this.#held.delete(tenant);
    }
    for (const { tenant, revision, since, digest, mesh } of tenants) {
      const held = this.#held.get(tenant);
      if (held !== undefined && isOlder({ epoch, revision }, held)) continue;
      // The changes refer to the version in the ask.
      if (since !== undefined && (held?.epoch !== epoch || held.revision !== since)) continue;
      const next = new Map(since === undefined ? [] : held?.members);
      for (const { id } of left.get(tenant) ?? []) next.delete(id);
      for (const member of given.get(tenant) ?? []) next.set(member.id, member);
      const isRight = digestOfMembers(basisIn(digest), next.values()) === digest;
      if (!isRight) this.#log.error('members_digest_differs', { tenant });
      this.#held.set(tenant, { epoch, revision, digest: isRight ? digest : '', mesh, members: next });
      isNews = true;
    }
    if (!isNews) return;
    for (const { host, end } of ends) {
      if (end === null) this.#ends.delete(host);
      else this.#ends.set(host, { host, ...end });
    }
    for (const { network, server } of servers) {
      if (server === null) this.#servers.delete(network);
      else this.#servers.set(network, server);
    }
    this.#changed();
  }

  applyRange(ipv4: string): void {
    if (this.#range === ipv4) return;
    this.#range = ipv4;
    this.#changed();
  }

  *all(): Generator<Member, void, void> {
    for (const { members } of this.#held.values()) yield* members.values();
  }

  /** The range of the containers' IPv4 addresses; `undefined` if containers have none. */
  range(): string | undefined {
    return this.#range;
  }

  /** The ends of the mesh, in the order in which they became known. */
  ends(): Iterable<HostEnd> {
    return this.#ends.values();
  }

  /** The hosts that serve VPN networks of these tenants. */
  servers(): Iterable<NetworkServer> {
    return this.#servers.values();
  }

  flush(): Promise<void> {
    return this.#file.flush();
  }

  #changed(): void {
    const hosts = new Set<HostKey | null>();
    const networks = new Set<NetworkName>();
    for (const member of this.all()) {
      if (isPeer(member)) networks.add(member.network);
      else hosts.add(member.host);
    }
    for (const { network, host } of this.#servers.values()) {
      if (networks.has(network)) hosts.add(host);
      else this.#servers.delete(network);
    }
    for (const host of this.#ends.keys()) if (!hosts.has(host)) this.#ends.delete(host);
    this.#file.touch();
    this.events.emit('changed');
  }
}

const byId = (members: readonly Member[]): ReadonlyMap<Member['id'], Member> =>
  new Map(members.map((member) => [member.id, member]));
