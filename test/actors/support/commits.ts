/** Commits and outcomes as journals hold them. */
import { bufferOf, encodeValue, type Commit } from '../../../actors/runtime/journal/codec.ts';
import { keys } from '../../../schemas/records/buckets.ts';
import { defaultTenant } from '../../../schemas/api/tenant.ts';
import { operation } from '../support.ts';
import { acme } from './records.ts';
import { noReading } from '../../../lib/time/cautious-clock.ts';

/** Outcome of a write with a body that has an escape in it. */
export const outcome = () => ({
  op: operation(),
  atMs: 1,
  code: 'ok' as const,
  answer: { kind: 'body' as const, body: '{"data":"a\\nb"}' },
});

/** Changes the tenant acme. */
export const tenantCommit = (number: number, more: Partial<Commit> = {}): Commit => ({
  number,
  changes: [[keys.tenant(acme), encodeValue({ ...defaultTenant(acme), number })]],
  operations: [],
  events: [],
  clock: noReading,
  ...more,
});

/** A commit as it is read, with values as bytes. */
export const asRead = (commit: Commit): Commit => ({
  ...commit,
  changes: commit.changes.map(([key, value]) => [key, value === null ? null : bufferOf(value)]),
});
