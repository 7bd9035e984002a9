/** The ring of release 0.1.0, as that release wrote it into the bucket of a partition. */
import { crc32 } from 'node:zlib';
import type { Commit } from '../../../actors/runtime/journal/codec.ts';
import { keys } from '../../../schemas/records/buckets.ts';

const slots = 1024;
export const legacyKey = (number: number): string => keys.journal(number % slots);

/** `1 <crc32> <head: JSON>`, then a line for each change. */
export function encodeLegacyEntry({ changes, ...rest }: Commit): string {
  const head = JSON.stringify({ ...rest, keys: changes.map(([key]) => key) });
  const values = changes.map(([, value]) => (value === null ? '-' : Buffer.from(value).toString()));
  const body = [head, ...values].join('\n');
  return `1 ${crc32(body).toString(16).padStart(8, '0')} ${body}`;
}
