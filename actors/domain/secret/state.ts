/** The secrets and registry logins of a tenant in memory (ADR 37). */
import type { ContainerRecord } from '../../../schemas/api/container.ts';
import type { LoginRecord, SecretFloorRecord, SecretRecord } from '../../../schemas/api/secret.ts';
import type { ContainerId } from '../../../schemas/ids.ts';
import { registryName } from '../../../schemas/api/registry.ts';
import { SecretUsers, type UsersView } from './users.ts';

/** The values of one secret by version; `null` if the record is damaged. */
export type Values = ReadonlyMap<number, SecretRecord | null>;

export interface SecretsView {
  /** By name. */
  readonly values: ReadonlyMap<string, Values>;
  /** By registry; `null` if the record is damaged. */
  readonly logins: ReadonlyMap<string, LoginRecord | null>;
  /** The highest version of any deleted secret. */
  readonly floor: number;
  /** The record that has it. */
  readonly floorRecord: SecretFloorRecord | undefined;
  users(name: string): UsersView;
  /**
   * Containers that should run and whose last pull this registry refused. Goes on over changes that
   * are made meanwhile.
   */
  refusedBy(registry: string): Iterable<ContainerId>;
}

/** Its current value waits for the next start or update of each container. */
export const isStaged = (values: Values | undefined): boolean => values?.get(currentOf(values) ?? 0)?.staged === true;

/** The version that new containers get; `undefined` if there is no such secret. */
export function currentOf(values: Values | undefined): number | undefined {
  return values === undefined ? undefined : Math.max(...values.keys());
}

/** `true` if the login is newer than the one that a registry refused, as far as is known. */
export const isNewer = (login: LoginRecord, { observed, observedAtMs }: ContainerRecord): boolean =>
  observed.refused_login === undefined
    ? // A report of before 0.2.0 does not say which one was refused.
      (observedAtMs ?? 0) <= login.updatedAtMs
    : observed.refused_login < login.version;

const isRefused = ({ desired, observed: { status, reason } }: ContainerRecord): boolean =>
  desired === 'running' && reason === 'image_auth' && (status === 'failed' || status === 'backoff');

export class TenantSecrets implements SecretsView {
  readonly values = new Map<string, Map<number, SecretRecord | null>>();
  readonly logins = new Map<string, LoginRecord | null>();
  readonly #users = new SecretUsers();
  /** By registry. */
  readonly #refused = new Map<string, Set<ContainerId>>();
  #floor: SecretFloorRecord | undefined;

  get floor(): number {
    return this.#floor?.version ?? 0;
  }
  get floorRecord(): SecretFloorRecord | undefined {
    return this.#floor;
  }
  set floorRecord(record: SecretFloorRecord) {
    this.#floor = record;
  }

  users(name: string): UsersView {
    return this.#users.of(name);
  }

  /** The login that has come while its registry refused the one before. */
  loginFor(record: ContainerRecord): LoginRecord | undefined {
    if (!isRefused(record) || record.observed.refused_login === undefined) return undefined;
    const login = this.logins.get(registryName(record.spec.registry));
    return login != null && isNewer(login, record) ? login : undefined;
  }

  refusedBy(registry: string): Iterable<ContainerId> {
    return this.#refused.get(registry) ?? [];
  }

  /** `true` if a sweep has something to do for it. */
  isUnsettled(name: string): boolean {
    const values = this.values.get(name);
    const current = currentOf(values);
    if (values === undefined || current === undefined || values.size < 2) return false;
    const users = this.users(name);
    if (!isStaged(values) && users.hasBehind(current)) return true;
    for (const version of values.keys()) if (version !== current && !users.need(version)) return true;
    return false;
  }

  put(name: string, version: number, record: SecretRecord | null): void {
    let values = this.values.get(name);
    if (values === undefined) this.values.set(name, (values = new Map()));
    values.set(version, record);
  }

  delete(name: string, version: number): void {
    const values = this.values.get(name);
    values?.delete(version);
    if (values?.size === 0) this.values.delete(name);
  }

  /**
   * Called when a container is put, changed or removed.
   * @returns the names of its secrets, if its use of them changes
   */
  note(before: ContainerRecord | undefined, after: ContainerRecord | undefined): Iterable<string> {
    if (before !== undefined && isRefused(before)) this.#noteRefused(before, false);
    if (after !== undefined && isRefused(after)) this.#noteRefused(after, true);
    return this.#users.note(before, after);
  }

  #noteRefused({ id, spec }: ContainerRecord, isThere: boolean): void {
    const registry = registryName(spec.registry);
    const refused = this.#refused.get(registry) ?? new Set();
    if (isThere) refused.add(id);
    else refused.delete(id);
    if (refused.size === 0) this.#refused.delete(registry);
    else this.#refused.set(registry, refused);
  }
}
