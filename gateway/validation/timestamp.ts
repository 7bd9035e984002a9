/** RFC 3339 date-times of a body. Pure. */
import { forms } from '../../lib/validation/words.ts';
import type { FieldErrors } from '../../schemas/errors.ts';

const form = /^(\d{4})-(\d{2})-(\d{2})[Tt](\d{2}):(\d{2}):(\d{2})(?:\.\d{1,9})?(?:[Zz]|[+-](\d{2}):(\d{2}))$/;

/** RFC 3339 has four digits for the year; a zone may move the UTC time beyond this. */
const lastMs = Date.parse('9999-12-31T23:59:59.999Z');

/** Undefined if there is no such time, such as a 30th of February or a leap second. */
export function parseTimestamp(text: string): number | undefined {
  const match = form.exec(text);
  if (match === null) return undefined;
  const [year = 0, month = 0, day = 0, hour = 0, minute = 0, second = 0, zoneHour = 0, zoneMinute = 0] = match
    .slice(1)
    .map((part: string | undefined) => (part === undefined ? 0 : Number(part)));
  const daysOfMonth = new Date(Date.UTC(year, month, 0)).getUTCDate();
  const isDate = year > 0 && month >= 1 && month <= 12 && day >= 1 && day <= daysOfMonth;
  const isTime = hour <= 23 && minute <= 59 && second <= 59 && zoneHour <= 23 && zoneMinute <= 59;
  const ms = Date.parse(text.toUpperCase());
  return isDate && isTime && ms <= lastMs ? ms : undefined;
}

type Bound = readonly [name: string, text: string | undefined];

/** A period of a query, either end of which may be absent, and its faults. */
export function periodIn(
  [startName, start]: Bound,
  [endName, end]: Bound,
): { readonly startMs: number | undefined; readonly endMs: number | undefined; readonly faults: FieldErrors } {
  const [startMs, endMs] = [start, end].map((text) => (text === undefined ? undefined : parseTimestamp(text)));
  const faults: FieldErrors = {};
  if (start !== undefined && startMs === undefined) faults[startName] = [forms.time];
  if (end !== undefined && endMs === undefined) faults[endName] = [forms.time];
  if (startMs !== undefined && endMs !== undefined && startMs >= endMs)
    faults[startName] = [`must be before \`${endName}\``];
  return { startMs, endMs, faults };
}

/** An expiry time, or its fault. */
export function parseExpiry(
  text: string,
  nowMs: number,
): { readonly ok: true; readonly ms: number } | { readonly ok: false; readonly fault: string } {
  const ms = parseTimestamp(text);
  if (ms === undefined) return { ok: false, fault: forms.time };
  return ms <= nowMs ? { ok: false, fault: 'must be in the future' } : { ok: true, ms };
}
