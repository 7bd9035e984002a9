/**
 * The containers of a tenant that use each version of a secret (ADR 37), by name. Kept with each
 * record, so that no ask and no sweep goes through all users of a secret.
 */
import type { ContainerRecord } from '../../../schemas/api/container.ts';
import { usesIn, type SecretUses } from '../../../schemas/api/secret.ts';
import type { ContainerId } from '../../../schemas/ids.ts';
import { isOnItsOnlyRun } from '../container/runs.ts';

/** The containers that use one secret, except those that are being removed. */
export interface UsersView {
  /** Containers that are made from the secret, or may go back to a version of it. */
  readonly ids: ReadonlySet<ContainerId>;
  /** `true` if one of them has it in a variable. */
  readonly isVariable: boolean;
  /** The number of versions that they are made from, or may go back to. */
  readonly versions: number;
  /** `true` if one of them is made from this version, or may go back to it. */
  need(version: number): boolean;
  /** `true` if some may be brought to this version, which is the current one. */
  hasBehind(version: number): boolean;
  /** These containers, and perhaps a few others. Continues over changes that are made meanwhile. */
  behind(version: number): Iterable<ContainerId>;
  /** Containers with another version that come to this one only with their next start or update. */
  keeping(version: number): Iterable<ContainerId>;
  /** Containers that are made from another version than this one. */
  madeFromOthers(version: number): Iterable<ContainerId>;
}

/** Containers that are alike in what they are made from. */
interface Alike extends Made {
  readonly ids: Set<ContainerId>;
}

interface Made {
  readonly version: number;
  /** The newest version that failed, and was taken back; 0 if there is none. */
  readonly failed: number;
  /** `true` if it may be updated now. */
  readonly isFree: boolean;
}

class Users implements UsersView {
  readonly ids = new Set<ContainerId>();
  variables = 0;
  /** The number of containers that need a version, by version. */
  readonly #needed = new Map<number, number>();
  readonly #alike = new Map<string, Alike>();
  /** The versions that a container is made from, by container that may run once and is at it. */
  readonly #running = new Map<ContainerId, ReadonlySet<number>>();

  get isVariable(): boolean {
    return this.variables > 0;
  }
  get versions(): number {
    return this.#needed.size;
  }
  need(version: number): boolean {
    return this.#needed.has(version);
  }
  hasBehind(version: number): boolean {
    for (const alike of this.#alike.values()) if (isBehindAt(alike, version)) return true;
    return false;
  }
  *behind(version: number): Generator<ContainerId, void, void> {
    for (const alike of this.#alike.values()) if (isBehindAt(alike, version)) yield* alike.ids;
  }
  *keeping(version: number): Generator<ContainerId, void, void> {
    for (const [id, made] of this.#running) if ([...made].some((one) => one !== version)) yield id;
  }

  *madeFromOthers(current: number): Generator<ContainerId, void, void> {
    const found = new Set<ContainerId>();
    for (const { version, ids } of this.#alike.values()) {
      for (const id of version === current ? [] : ids) {
        if (found.has(id)) continue;
        found.add(id);
        yield id;
      }
    }
  }

  countNeeded(version: number, sign: 1 | -1): void {
    const count = (this.#needed.get(version) ?? 0) + sign;
    if (count === 0) this.#needed.delete(version);
    else this.#needed.set(version, count);
  }

  add(id: ContainerId, made: Made): void {
    const key = keyOf(made);
    let alike = this.#alike.get(key);
    if (alike === undefined) this.#alike.set(key, (alike = { ...made, ids: new Set() }));
    alike.ids.add(id);
  }

  run(id: ContainerId, made: ReadonlySet<number>, sign: 1 | -1): void {
    if (sign === 1) this.#running.set(id, made);
    else this.#running.delete(id);
  }

  remove(id: ContainerId, made: Made): void {
    const key = keyOf(made);
    const ids = this.#alike.get(key)?.ids;
    ids?.delete(id);
    if (ids?.size === 0) this.#alike.delete(key);
  }
}

const keyOf = ({ version, failed, isFree }: Made): string => `${version} ${failed} ${isFree}`;

const isBehindAt = ({ version, failed, isFree }: Alike, current: number): boolean =>
  isFree && version !== current && failed !== current;

const nobody: UsersView = new Users();

/** The use of one secret by one container. */
interface Use {
  readonly made: Set<number>;
  readonly previous: Set<number>;
  isVariable: boolean;
  failed: number;
}

const noUses: ReadonlyMap<string, Use> = new Map();

/** The uses of secrets, by the name of the secret. */
function usesOf({ secrets, update }: ContainerRecord): ReadonlyMap<string, Use> {
  const previous = update?.previous?.secrets;
  if (secrets === undefined && previous === undefined) return noUses;
  const uses = new Map<string, Use>();
  const useOf = (name: string): Use => {
    let use = uses.get(name);
    if (use === undefined)
      uses.set(name, (use = { made: new Set(), previous: new Set(), isVariable: false, failed: 0 }));
    return use;
  };
  for (const { name, version } of of(secrets)) useOf(name).made.add(version);
  for (const { name, version } of of(previous)) useOf(name).previous.add(version);
  for (const { name } of Object.values(secrets?.env ?? {})) useOf(name).isVariable = true;
  if (update?.phase !== 'rolled_back') return uses;
  for (const { name, version } of of(update.to.secrets)) {
    const use = uses.get(name);
    if (use !== undefined) use.failed = Math.max(use.failed, version);
  }
  return uses;
}

const of = (uses: SecretUses | undefined) => (uses === undefined ? [] : usesIn(uses));

export class SecretUsers {
  readonly #users = new Map<string, Users>();

  of(name: string): UsersView {
    return this.#users.get(name) ?? nobody;
  }

  /**
   * Called when a container is put, changed or removed.
   * @returns the names of its secrets, if its use of them changes
   */
  note(before: ContainerRecord | undefined, after: ContainerRecord | undefined): Iterable<string> {
    // Most changes are reports.
    if (before !== undefined && after !== undefined && isSameUse(before, after)) return [];
    return [...this.#count(before, -1), ...this.#count(after, 1)];
  }

  #count(record: ContainerRecord | undefined, sign: 1 | -1): Iterable<string> {
    if (record === undefined || record.desired === 'removed') return [];
    const { id } = record;
    const uses = usesOf(record);
    const isFree = mayChange(record);
    for (const [name, { made, previous, isVariable, failed }] of uses) {
      let users = this.#users.get(name);
      if (users === undefined) this.#users.set(name, (users = new Users()));
      if (sign === 1) users.ids.add(id);
      else users.ids.delete(id);
      if (isVariable) users.variables += sign;
      for (const version of new Set([...made, ...previous])) users.countNeeded(version, sign);
      if (isOnItsOnlyRun(record)) users.run(id, made, sign);
      for (const version of made) {
        if (sign === 1) users.add(id, { version, failed, isFree });
        else users.remove(id, { version, failed, isFree });
      }
      if (users.ids.size === 0) this.#users.delete(name);
    }
    return uses.keys();
  }
}

/** One update after another: one that fails takes back what it brought, and nothing else. */
const mayChange = (record: ContainerRecord): boolean =>
  record.update?.previous === undefined && !isOnItsOnlyRun(record);

const isSameUse = (before: ContainerRecord, after: ContainerRecord): boolean =>
  before.secrets === after.secrets &&
  before.update === after.update &&
  (before.desired === 'removed') === (after.desired === 'removed') &&
  mayChange(before) === mayChange(after) &&
  isOnItsOnlyRun(before) === isOnItsOnlyRun(after);
