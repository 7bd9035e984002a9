/**
 * Cursors of lists: opaque to clients, base64url of a key that says where a page ended. The next
 * page begins behind it, whether or not that item still exists.
 *
 * A key is a list of parts, written as `{"v":1,"key":[…]}`. The last release writes its parts with
 * dots between them, which is read, too. What is neither, or has another version, is answered with
 * 422 under `cursor` (gateway/http/pages.ts).
 */
import { isContainerId, isTenantId, type ContainerId, type PeerId, type TenantId } from '../ids.ts';

const version = 1;

const encode = (...key: readonly (string | number)[]): string =>
  btoa(JSON.stringify({ v: version, key: key.map(String) }))
    .replaceAll('+', '-')
    .replaceAll('/', '_')
    .replaceAll('=', '');

/** The parts of a `{v, key}`; `undefined` if it is not of this version. */
function versioned(text: string): readonly string[] | undefined {
  try {
    const { v, key } = JSON.parse(text) as { readonly v?: unknown; readonly key?: unknown };
    const isKey = Array.isArray(key) && key.every((part): part is string => typeof part === 'string');
    return v === version && isKey ? key : undefined;
  } catch {
    return undefined;
  }
}

/**
 * The parts of a key; none if the text is not a cursor.
 * @param count of the parts; the last one may have dots in it
 */
function decode(text: string, count: number): readonly string[] {
  // atob throws for a length of 1 modulo 4, which no base64 has.
  if (!/^[A-Za-z0-9_-]{2,400}$/.test(text) || text.length % 4 === 1) return [];
  const plain = atob(text.replaceAll('-', '+').replaceAll('_', '/'));
  if (plain.startsWith('{')) return versioned(plain) ?? [];
  const parts = plain.split('.');
  return [...parts.slice(0, count - 1), ...(parts.length < count ? [] : [parts.slice(count - 1).join('.')])];
}

/** A whole number from 0 on; `undefined` if the part is not one. */
const numberIn = (part: string | undefined): number | undefined =>
  part !== undefined && /^\d{1,15}$/.test(part) ? Number(part) : undefined;

/** Place in a list by time, newest first. */
export interface ListCursor {
  readonly insertedAtMs: number;
  readonly id: ContainerId | PeerId;
}

export const encodeCursor = ({ insertedAtMs, id }: ListCursor): string => encode(insertedAtMs, id);

/** `undefined` if the text is not a cursor of this API. */
export function decodeCursor(text: string): ListCursor | undefined {
  const [ms, id = ''] = decode(text, 2);
  const insertedAtMs = numberIn(ms);
  return insertedAtMs !== undefined && isContainerId(id) ? { insertedAtMs, id } : undefined;
}

/** The cursor of a list by key: the last key on the page. */
export const encodeKeyCursor = (key: string): string => encode(key);

/** `undefined` if the text is not a cursor of this API. */
export function decodeKeyCursor(text: string, isKey: (key: string) => boolean): string | undefined {
  const [key] = decode(text, 1);
  return key !== undefined && isKey(key) ? key : undefined;
}

/**
 * A place in the order of all containers of a partition: by tenant, then by time. The id is empty
 * where a tenant begins.
 */
export interface Place {
  readonly tenant: TenantId;
  readonly insertedAtMs: number;
  readonly id: ContainerId | '';
}

/** Place where a list of all containers resumes; null for the start of the partition. */
export interface PlaceCursor {
  readonly partition: number;
  readonly from: Place | null;
}

export const encodePlaceCursor = ({ partition, from }: PlaceCursor): string =>
  from === null ? encode(partition) : encode(partition, from.tenant, from.insertedAtMs, from.id);

/** `undefined` if the text is not a cursor of this API. */
export function decodePlaceCursor(text: string): PlaceCursor | undefined {
  const [first, tenant, ms, id] = decode(text, 4);
  const partition = numberIn(first);
  if (partition === undefined) return undefined;
  if (tenant === undefined) return { partition, from: null };
  const insertedAtMs = numberIn(ms);
  const isPlace = isTenantId(tenant) && (id === '' || (id !== undefined && isContainerId(id)));
  return isPlace && insertedAtMs !== undefined ? { partition, from: { tenant, insertedAtMs, id } } : undefined;
}

/** Place in the usage of all tenants: behind a container, or with an empty id behind a tenant. */
export interface UsageCursor {
  readonly tenant: TenantId;
  readonly id: ContainerId | '';
}

export const encodeUsageCursor = ({ tenant, id }: UsageCursor): string => encode(tenant, id);

/** `undefined` if the text is not a cursor of this API. */
export function decodeUsageCursor(text: string): UsageCursor | undefined {
  const [tenant, id] = decode(text, 2);
  const isPlace = tenant !== undefined && isTenantId(tenant) && id !== undefined && (id === '' || isContainerId(id));
  return isPlace ? { tenant, id } : undefined;
}

/** End of a page of a stream's past. */
export interface PastCursor {
  /** The position of the stream where the next page begins; `undefined` for any. */
  readonly at: number | undefined;
  /** The last item that was given; empty: none was. */
  readonly id: string;
}

export const encodePastCursor = ({ at, id }: PastCursor): string => encode(at ?? '', id);

/** `undefined` if the text is not a cursor of this API. */
export function decodePastCursor(text: string): PastCursor | undefined {
  const [first, id] = decode(text, 2);
  const at = numberIn(first);
  const isItem = id !== undefined && /^(?:\d{1,6}-\d{1,15}-\d{1,6})?$/.test(id);
  return isItem && (first === '' || at !== undefined) ? { at, id } : undefined;
}

/** A place in the lines of several containers, which are in the order of number, then id. */
export interface LogPlace {
  /** Of a line. */
  readonly seq: number;
  /** The container whose line of this number was the last; empty: those of all were looked at. */
  readonly id: ContainerId | '';
}

export const encodeLogPlace = ({ seq, id }: LogPlace): string => encode(seq, id);

/** `undefined` if the text is not a cursor of this API. */
export function decodeLogPlace(text: string): LogPlace | undefined {
  const [seq, id] = decode(text, 2);
  const isPlace = seq !== undefined && /^\d{1,16}$/.test(seq) && id !== undefined && (id === '' || isContainerId(id));
  return isPlace ? { seq: Number(seq), id } : undefined;
}

/** The cursor of log lines: the number of the last line that was looked at. */
export const encodeLogCursor = (seq: number): string => encode(seq);

/** `undefined` if the text is not a cursor of this API. */
export function decodeLogCursor(text: string): number | undefined {
  const [seq] = decode(text, 1);
  return seq !== undefined && /^\d{1,16}$/.test(seq) ? Number(seq) : undefined;
}
