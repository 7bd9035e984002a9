/** Cursors of lists, as clients see them. */
import { isContainerId, isTenantId, type ContainerId, type PeerId, type TenantId } from '../ids.ts';

/**
 * Where a page ended. The next page begins with older items, whether or not this one still exists.
 */
export interface ListCursor {
  readonly insertedAtMs: number;
  readonly id: ContainerId | PeerId;
}

const encode = (text: string): string => btoa(text).replaceAll('+', '-').replaceAll('/', '_').replaceAll('=', '');

/** Undefined: the text is not base64url, or too long for a cursor. */
function decode(text: string): string | undefined {
  // atob throws for a length of 1 modulo 4, which no base64 has.
  if (!/^[A-Za-z0-9_-]{2,200}$/.test(text) || text.length % 4 === 1) return undefined;
  return atob(text.replaceAll('-', '+').replaceAll('_', '/'));
}

/** The cursor of a list by time: base64url of `<insertedAtMs>.<id>`. */
export const encodeCursor = ({ insertedAtMs, id }: ListCursor): string => encode(`${insertedAtMs}.${id}`);

/** Undefined: the text is not a cursor of this API. */
export function decodeCursor(text: string): ListCursor | undefined {
  const [, ms, id] = /^(\d{1,15})\.(.+)$/.exec(decode(text) ?? '') ?? [];
  return ms !== undefined && id !== undefined && isContainerId(id) ? { insertedAtMs: Number(ms), id } : undefined;
}

/** The cursor of a list by key: base64url of the last key on the page. */
export const encodeKeyCursor = (key: string): string => encode(key);

/** Undefined: the text is not a cursor of this API. */
export function decodeKeyCursor(text: string, isKey: (key: string) => boolean): string | undefined {
  const key = decode(text);
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

/** Base64url of `<partition>` or `<partition>.<tenant>.<insertedAtMs>.<id>`. */
export const encodePlaceCursor = ({ partition, from }: PlaceCursor): string =>
  encode(
    from === null ? String(partition).padStart(2, '0') : `${partition}.${from.tenant}.${from.insertedAtMs}.${from.id}`,
  );

/** Undefined: the text is not a cursor of this API. */
export function decodePlaceCursor(text: string): PlaceCursor | undefined {
  const whole = /^(\d{1,5})(?:\.([^.]+)\.(\d{1,15})\.(.*))?$/.exec(decode(text) ?? '');
  if (whole === null) return undefined;
  const [, partition, tenant, ms, id = ''] = whole;
  if (tenant === undefined) return { partition: Number(partition), from: null };
  const isPlace = isTenantId(tenant) && (id === '' || isContainerId(id));
  return isPlace ? { partition: Number(partition), from: { tenant, insertedAtMs: Number(ms), id } } : undefined;
}

/** End of a page of the audit. */
export interface AuditCursor {
  /** The newest position of the stream that may have older lines; undefined: any. */
  readonly seq: number | undefined;
  /** The last line that was given; empty: none was. */
  readonly id: string;
}

/** Base64url of `<seq>.<id>`, each of which may be empty. */
export const encodeAuditCursor = ({ seq, id }: AuditCursor): string => encode(`${seq ?? ''}.${id}`);

/** Undefined: the text is not a cursor of this API. */
export function decodeAuditCursor(text: string): AuditCursor | undefined {
  const [, seq, id] = /^(\d{0,15})\.((?:\d{1,6}-\d{1,15}-\d{1,6})?)$/.exec(decode(text) ?? '') ?? [];
  return seq === undefined || id === undefined ? undefined : { seq: seq === '' ? undefined : Number(seq), id };
}
