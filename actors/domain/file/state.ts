/** The contents of a tenant's files in memory, and whether a container uses them (ADR 49). */
import type { FileRecord, FileUses } from '../../../schemas/api/fields/files-part.ts';
import type { ContainerRecord } from '../../../schemas/api/container.ts';

export interface FilesView {
  /** By hash; `null` if the record is damaged. */
  readonly records: ReadonlyMap<string, FileRecord | null>;
  /** Bytes of all records. */
  readonly bytes: number;
  /** Hashes that no container uses. */
  readonly unused: ReadonlySet<string>;
}

const none: FileUses = {};
/** The files that a container is made from, and those that it may go back to. */
const sidesOf = (record: ContainerRecord | undefined): readonly FileUses[] => [
  record?.spec.files ?? none,
  record?.update?.previous?.spec.files ?? none,
  ...(record?.versions?.list ?? []).map(({ differs }) => differs.files ?? none),
];
/** Hashes of all contents that a container is made from, or may go back to. */
export const hashesOf = (record: ContainerRecord | undefined): ReadonlySet<string> =>
  new Set(sidesOf(record).flatMap((files) => Object.values(files).map(({ sha256 }) => sha256)));

export class TenantFiles implements FilesView {
  readonly records = new Map<string, FileRecord | null>();
  readonly unused = new Set<string>();
  bytes = 0;
  /** By hash, the number of containers that use it. */
  readonly #users = new Map<string, number>();

  put(sha256: string, record: FileRecord | null): void {
    this.#count(sha256, -1);
    this.records.set(sha256, record);
    this.#count(sha256, 1);
    if (!this.#users.has(sha256)) this.unused.add(sha256);
  }

  delete(sha256: string): void {
    this.#count(sha256, -1);
    this.records.delete(sha256);
    this.unused.delete(sha256);
  }

  /** Called when a container is put, changed or removed. */
  note(before: ContainerRecord | undefined, after: ContainerRecord | undefined): void {
    const [old, next] = [sidesOf(before), sidesOf(after)];
    // Most changes are reports.
    if (old.length === next.length && old.every((files, index) => files === next[index])) return;
    for (const sha256 of hashesOf(after)) this.#use(sha256, 1);
    for (const sha256 of hashesOf(before)) this.#use(sha256, -1);
  }

  #count(sha256: string, sign: 1 | -1): void {
    this.bytes += sign * (this.records.get(sha256)?.bytes ?? 0);
  }

  #use(sha256: string, sign: 1 | -1): void {
    const users = (this.#users.get(sha256) ?? 0) + sign;
    if (users > 0) {
      this.#users.set(sha256, users);
      this.unused.delete(sha256);
      return;
    }
    this.#users.delete(sha256);
    if (this.records.has(sha256)) this.unused.add(sha256);
  }
}
