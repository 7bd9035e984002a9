/**
 * Secrets and registry logins in virtual time: clients that change them while containers use them,
 * a registry that refuses images by a wrong login, and what must hold in the end. The checker of
 * histories knows no updates without a request, so these tenants are judged by what is stored.
 */
import type { PartitionState } from '../../../actors/domain/state.ts';
import { currentOf } from '../../../actors/domain/secret/state.ts';
import { isBehind } from '../../../actors/domain/secret/versions.ts';
import type { Login } from '../../../host-agent/secrets/values.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import type { ContainerRecord } from '../../../schemas/api/container.ts';
import { noSecrets, usesIn, type SecretUses } from '../../../schemas/api/secret.ts';
import type { ContainerId, OperationId, TenantId } from '../../../schemas/ids.ts';
import { partitionOf } from '../../../schemas/wire/subjects.ts';
import { specOf } from '../../actors/support.ts';
import type { Random } from '../../actors/support/random.ts';
import { sealedAs } from '../../actors/support/secrets.ts';
import type { Question } from '../../../lib/rpc/partition-client.ts';
import { causeOf } from './audit.ts';
import { badTag, isUp, type Engine } from './engine.ts';
import type { Gateway } from './gateway.ts';

/** A registry whose images need a login. */
export const privateRegistry = 'private.test';
const names = ['a', 'b', 'c'] as const;
const tags = ['1', '2', badTag] as const;

type Material = { readonly username: string; readonly sealed: string; readonly version: number };
type Write = Question extends infer Q ? (Q extends { op: OperationId; tenant: TenantId } ? Q : never) : never;
type Asked = Write extends infer Q ? (Q extends Write ? Omit<Q, 'rid' | 'op' | 'cause' | 'tenant'> : never) : never;

export const textOf = (uses: SecretUses = noSecrets): string =>
  usesIn(uses)
    .map(({ name, version }) => `${name}@${version}`)
    .sort()
    .join();

export class Secrets {
  readonly tenants: readonly TenantId[];
  readonly #newToken: () => string;
  readonly #unwanted: () => Set<string>;
  /** Passwords that the registry knows. */
  readonly #known = new Set<string>();
  /** `<tenant> <name> <version>`: the value that hosts keep under it. */
  readonly #values = new Map<string, string>();
  readonly #containers = new Map<TenantId, ContainerId[]>();

  /** @param unwanted containers whose removal a client at least requested */
  constructor(tenants: readonly TenantId[], newToken: () => string, unwanted: () => Set<string>) {
    this.tenants = tenants;
    this.#newToken = newToken;
    this.#unwanted = unwanted;
  }

  accepts(registry: string, login: Login): boolean {
    return registry !== privateRegistry || (login.kind === 'login' && this.#known.has(login.login.password));
  }

  /** The login that a gateway gives to a host. */
  async loginOf(gateway: Gateway, tenant: TenantId, registry: string): Promise<Login> {
    if (registry !== privateRegistry) return { kind: 'none' };
    const ask = { type: 'login.material', tenant, registry, rid: this.#newToken() } as const;
    const { code, body } = await gateway.ask('read', ask);
    if (code !== 'ok') return { kind: 'unknown' };
    const { current } = (JSON.parse(body) as { data: { current: Material | null } }).data;
    if (current === null) return { kind: 'none' };
    const { username, sealed: password, version } = current;
    return { kind: 'login', login: { username, password, version }, isCurrent: true };
  }

  async #write(gateway: Gateway, tenant: TenantId, asked: Asked): Promise<string> {
    const asker = { rid: this.#newToken(), op: this.#newToken() as OperationId };
    const ask = { ...asked, tenant, ...asker, cause: causeOf(tenant, asked.type) } as Question;
    return (await gateway.ask('write', ask)).code;
  }

  async #next(gateway: Gateway, question: Question): Promise<number | undefined> {
    const { code, body } = await gateway.ask('read', question);
    return code === 'ok' ? (JSON.parse(body) as { data: { next: number } }).data.next : undefined;
  }

  async #putSecret(gateway: Gateway, tenant: TenantId, name: string): Promise<string> {
    const rid = this.#newToken();
    const version = await this.#next(gateway, { type: 'secret.material', tenant, name, rid });
    if (version === undefined) return 'unavailable';
    const sealed = sealedAs(this.#newToken());
    return this.#write(gateway, tenant, { type: 'secret.put', name, version, sealed });
  }

  async #putLogin(gateway: Gateway, tenant: TenantId, isRight: boolean): Promise<string> {
    const registry = privateRegistry;
    const rid = this.#newToken();
    const version = await this.#next(gateway, { type: 'login.material', tenant, registry, rid });
    if (version === undefined) return 'unavailable';
    const sealed = sealedAs(this.#newToken());
    if (isRight) this.#known.add(sealed);
    return this.#write(gateway, tenant, { type: 'login.put', registry, version, username: 'sim', sealed });
  }

  async #create(gateway: Gateway, random: Random, tenant: TenantId): Promise<void> {
    const id = this.#newToken() as ContainerId;
    const spec = specOf(`c${random.below(4)}`, random.once(2) ? { registry: privateRegistry } : {});
    const code = await this.#write(gateway, tenant, { type: 'container.create', id, spec, idempotency: null });
    if (code === 'created' || code === 'timeout')
      this.#containers.set(tenant, [...(this.#containers.get(tenant) ?? []), id]);
  }

  /** Changes secrets, logins and what uses them, until it is stopped. */
  async live(random: Random, gateway: Gateway, isOver: () => boolean): Promise<void> {
    while (!isOver()) {
      const tenant = random.pick(this.tenants as readonly [TenantId, ...TenantId[]]);
      const known = this.#containers.get(tenant) ?? [];
      const id = known[random.below(known.length)];
      const name = random.pick(names);
      const dice = random.below(12);
      if (dice < 3) await this.#putSecret(gateway, tenant, name);
      else if (dice === 3) await this.#putLogin(gateway, tenant, random.once(2));
      else if (dice === 4) await this.#write(gateway, tenant, { type: 'secret.remove', name });
      else if (id === undefined || dice < 7) await this.#create(gateway, random, tenant);
      else if (dice < 9) {
        const secrets = { env: random.once(4) ? {} : { TOKEN: name }, files: {} };
        await this.#write(gateway, tenant, { type: 'container.secrets.put', id, secrets });
      } else if (dice === 9) {
        await this.#write(gateway, tenant, { type: 'container.update', id, patch: { tag: random.pick(tags) } });
      } else if (dice === 10) {
        const type = random.pick(['container.start', 'container.stop'] as const);
        await this.#write(gateway, tenant, { type, id });
      } else if (random.once(2)) {
        this.#unwanted().add(id);
        await this.#write(gateway, tenant, { type: 'container.delete', id });
      }
      await sleep(1 + random.below(200));
    }
  }

  /** All logins are right in the end. */
  async finish(gateway: Gateway): Promise<void> {
    for (const tenant of this.tenants) {
      for (let attempt = 0; (await this.#putLogin(gateway, tenant, true)) !== 'ok'; attempt++) {
        if (attempt === 20) throw new Error(`a login of ${tenant} is not possible`);
        await sleep(200);
      }
    }
  }

  /** Containers that are stored. */
  containersIn(states: readonly PartitionState[]): ContainerRecord[] {
    return this.tenants.flatMap((tenant) => [
      ...(states[partitionOf(tenant, states.length)]?.tenant(tenant).containers.values() ?? []),
    ]);
  }

  /** A version of a secret has one value for ever: hosts keep it by name and version. */
  valueFaults(states: readonly PartitionState[]): string[] {
    const faults: string[] = [];
    for (const tenant of this.tenants) {
      const { values = new Map() } = states[partitionOf(tenant, states.length)]?.tenant(tenant).secrets ?? {};
      for (const [name, versions] of values) {
        for (const [version, record] of versions) {
          const key = `${tenant} ${name} ${version}`;
          const sealed = record?.sealed ?? 'damaged';
          if ((this.#values.get(key) ?? sealed) !== sealed) faults.push(`${key} has another value than before`);
          this.#values.set(key, sealed);
        }
      }
    }
    return faults;
  }

  /**
   * Contradictions to the last values and logins; none may be left once all have followed.
   * @param mayBeHeld true if an operator decides about a copy that is on a host since before a
   * restore
   */
  faults(
    states: readonly PartitionState[],
    engines: readonly Engine[],
    mayBeHeld: (id: ContainerId) => boolean,
  ): string[] {
    const faults = this.valueFaults(states);
    for (const record of this.containersIn(states)) {
      const { tenant, id, desired, spec, update } = record;
      const { values } = (states[partitionOf(tenant, states.length)] as PartitionState).tenant(tenant).secrets;
      const of = `${tenant} ${id}`;
      for (const { name } of usesIn(record.secrets ?? noSecrets)) {
        const current = currentOf(values.get(name));
        if (current === undefined) faults.push(`${of} uses ${name}, which is not there`);
        else if (desired !== 'removed' && isBehind(record, name, current))
          faults.push(`${of} has an old value of ${name}`);
      }
      if (desired !== 'running' || spec.tag === badTag) continue;
      if (update?.phase === 'preparing' || update?.phase === 'verifying') faults.push(`${of}: its update does not end`);
      const copies = engines.flatMap(({ copies: all }) =>
        [...all.values()].filter(({ found }) => found.id === id && isUp(found)),
      );
      const running = copies.map(({ tag, secrets }) => `${tag} ${textOf(secrets)}`);
      const wanted = `${spec.tag} ${textOf(record.secrets)}`;
      const isAsWanted = running.includes(wanted) && (running.length === 1 || mayBeHeld(id));
      if (!isAsWanted) faults.push(`${of} should run as "${wanted}", and runs as "${running.join(' and ')}"`);
    }
    return faults;
  }
}
