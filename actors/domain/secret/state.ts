/**
 * The secrets and registry logins of a tenant in memory, and which of its containers use which
 * secret (ADR 37).
 */
import type { ContainerRecord } from '../../../schemas/api/container.ts';
import {
  type LoginRecord,
  namesIn,
  type SecretFloorRecord,
  type SecretRecord,
  usesIn,
} from '../../../schemas/api/secret.ts';
import type { ContainerId } from '../../../schemas/ids.ts';

/** The values of one secret by version; null: the record is damaged. */
export type Values = ReadonlyMap<number, SecretRecord | null>;

export interface SecretsView {
  /** By name. */
  readonly values: ReadonlyMap<string, Values>;
  /** By registry; null: the record is damaged. */
  readonly logins: ReadonlyMap<string, LoginRecord | null>;
  /** The highest version that a deleted one had. */
  readonly floor: number;
  /** Containers that are made from the secret, or may go back to a version of it. */
  users(name: string): ReadonlySet<ContainerId>;
}

const nobody: ReadonlySet<ContainerId> = new Set();

/** The versions of the secret that a container is made from, or may go back to. */
export function* versionsIn({ secrets, update }: ContainerRecord, name: string): Generator<number, void, void> {
  for (const uses of [secrets, update?.previous?.secrets]) {
    if (uses === undefined) continue;
    for (const use of usesIn(uses)) if (use.name === name) yield use.version;
  }
}

function namesOf({ secrets, update }: ContainerRecord): ReadonlySet<string> {
  const previous = update?.previous?.secrets;
  if (secrets === undefined && previous === undefined) return noNames;
  return new Set([secrets, previous].flatMap((uses) => (uses === undefined ? [] : [...namesIn(uses)])));
}

const noNames: ReadonlySet<string> = new Set();

/** The version that new containers get; undefined: there is no such secret. */
export function currentOf(values: Values | undefined): number | undefined {
  return values === undefined ? undefined : Math.max(...values.keys());
}

export class TenantSecrets implements SecretsView {
  readonly values = new Map<string, Map<number, SecretRecord | null>>();
  readonly logins = new Map<string, LoginRecord | null>();
  readonly #users = new Map<string, Set<ContainerId>>();
  #floor: SecretFloorRecord | undefined;

  get floor(): number {
    return this.#floor?.version ?? 0;
  }
  set floorRecord(record: SecretFloorRecord) {
    this.#floor = record;
  }

  users(name: string): ReadonlySet<ContainerId> {
    return this.#users.get(name) ?? nobody;
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

  /** A container is put, or taken out. */
  note(record: ContainerRecord, isThere: boolean): void {
    for (const name of namesOf(record)) {
      const users = this.#users.get(name) ?? new Set();
      if (isThere) users.add(record.id);
      else users.delete(record.id);
      if (users.size === 0) this.#users.delete(name);
      else this.#users.set(name, users);
    }
  }
}
