/**
 * Contents of the files of a tenant's containers (ADR 49), by hash: they are put before the
 * document that names them. One that no container has, nor may go back to, is forgotten after a
 * while. Pure.
 */
import type { FileRecord } from '../../../schemas/api/fields/files-part.ts';
import { limits } from '../../../schemas/limits.ts';
import { keys } from '../../../schemas/records/buckets.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import { isOn, refusalOfHost } from '../secret/unseal.ts';
import type { PartitionView } from '../state.ts';
import { answer, conflict, data, noChanges, refuse, type Changes, type Turn, type TurnContext } from '../turn.ts';
import { hashesOf } from './state.ts';

type Of<Type extends Ask['type']> = Extract<Ask, { type: Type }>;

/** Idempotent. A content that no container uses is stored again, for its time begins again. */
export function put(state: PartitionView, ask: Of<'file.put'>, context: TurnContext): Turn {
  const { files } = state.tenant(ask.tenant);
  const stale = context.nowMs - limits.fileUnusedMs / 2;
  const records: FileRecord[] = [];
  let more = 0;
  for (const { sha256, content, bytes } of ask.files) {
    const known = files.records.get(sha256);
    if (known != null && (!files.unused.has(sha256) || known.updatedAtMs > stale)) continue;
    if (known == null) more += bytes;
    records.push({ kind: 'file', tenant: ask.tenant, sha256, content, bytes, updatedAtMs: context.nowMs });
  }
  if (files.bytes + more > limits.filesOfTenantBytes)
    return conflict(
      'too_many',
      `the files of all containers would have more than ${limits.filesOfTenantBytes} bytes, each content counted once: ` +
        `make files smaller, or delete containers that have some; what no container uses is gone ` +
        `${limits.fileUnusedMs / 60_000} minutes later`,
    );
  return answer({ code: 'no_content', body: '' }, records.length === 0 ? noChanges : { ...noChanges, records });
}

export function get(state: PartitionView, { tenant: id, hashes, host }: Of<'file.get'>, context: TurnContext): Turn {
  const tenant = state.tenant(id);
  if (host !== undefined) {
    const refusal = refusalOfHost(host.by.host, host.by.user, context);
    if (refusal !== undefined) return refusal;
    const record = tenant.containers.get(host.container);
    if (record === undefined || !isOn(record, host.by.host))
      return refuse('forbidden', 'this host has no such container');
    const used = hashesOf(record);
    if (!hashes.every((sha256) => used.has(sha256))) return refuse('forbidden', 'this container has no such file');
  }
  const contents = hashes.map((sha256) => tenant.files.records.get(sha256)?.content);
  return contents.every((content) => content !== undefined)
    ? answer(data('ok', contents))
    : refuse('internal', 'the stored content of a file is missing or damaged: write the document again, with it');
}

/**
 * The refusal of a document whose files were not put, or so long ago that they are gone;
 * `undefined` if all are there.
 */
export function refusalOfMissing(
  state: PartitionView,
  { tenant, declaration }: Of<'spec.put'> | Of<'spec.create'>,
): Turn | undefined {
  const { records } = state.tenant(tenant).files;
  const isThere = ({ sha256 }: { readonly sha256: string }): boolean => records.get(sha256) != null;
  return Object.values(declaration.spec.files ?? {}).every(isThere)
    ? undefined
    : refuse('unavailable', 'the contents of its files did not arrive: send the request again');
}

/** Deletes contents that no container has used for long. */
export function expiredFiles(state: PartitionView, nowMs: number): Changes {
  const deletes: string[] = [];
  for (const { tenant, files, damaged } of state.tenantsWithUnusedFiles()) {
    // The files of a damaged container are unknown.
    if (damaged.size > 0) continue;
    for (const sha256 of files.unused) {
      if (deletes.length >= limits.sweepChanges) return { ...noChanges, deletes };
      if ((files.records.get(sha256)?.updatedAtMs ?? 0) + limits.fileUnusedMs > nowMs) continue;
      deletes.push(keys.file(tenant, sha256));
    }
  }
  return deletes.length === 0 ? noChanges : { ...noChanges, deletes };
}
