/** Asks for which a key is signed before their turn: nothing is signed that would be refused. */
import t from 'tap';
import { createHostCredentials } from '../../../actors/endpoints/credentials.ts';
import { encodeValue } from '../../../actors/runtime/journal/codec.ts';
import { recordKey, type StateRecord } from '../../../actors/domain/records.ts';
import type { HostRecord } from '../../../schemas/api/host.ts';
import type { WriteAsk } from '../../../schemas/wire/asks.ts';
import { operation } from '../support.ts';
import { createMemorySink, createMemoryStore, MemoryBucket } from '../support/memory-store.ts';
import { createPartition } from '../support/partition.ts';
import { acme, h1, h2, hostRecord } from '../support/records.ts';

const nowMs = 1_000_000_500;
const untilMs = nowMs + 1;
const asker = { rid: 'r', budgetMs: 1000, op: operation() };
const enrol = { type: 'host.enrol', host: h1, joinTokenHash: 'right', publicKey: 'UNEW', ...asker } as const;

/** Credentials signed for an ask while a partition has these records. */
async function signedFor(ask: WriteAsk, ...records: readonly StateRecord[]) {
  const signed: object[] = [];
  const { prepare } = createHostCredentials({
    clusterId: 'c1',
    account: { publicKey: 'A', signingSeed: 'SA' },
    ttlMs: 60_000,
    natsUrls: ['nats://one', 'nats://two'],
    clock: { nowMs: () => nowMs, monotonicMs: () => 0 },
    sign: async (_account, user) => {
      signed.push(user);
      return Promise.resolve('signed');
    },
  });
  const bucket = new MemoryBucket();
  for (const record of records) bucket.set(recordKey(record), encodeValue(record));
  const partition = createPartition({ store: createMemoryStore(bucket), events: createMemorySink([]) });
  await partition.start();
  const prepared = await prepare(partition, ask);
  partition.drop();
  return { prepared, signed };
}
const withToken = (join: Partial<NonNullable<HostRecord['join']>> = {}, more: Partial<HostRecord> = {}) =>
  hostRecord(h1, { publicKey: null, join: { tokenHash: 'right', untilMs, spentBy: null, ...join }, ...more });

t.test('an enrolment with a good token: its key, for its host and its time', async (t) => {
  const { prepared, signed } = await signedFor(enrol, withToken());
  t.same(signed, [{ host: h1, publicKey: 'UNEW', expiresAtS: 1_000_060 }]);
  t.same(prepared, { nowMs, enrolment: { cluster: 'c1', natsUrls: ['nats://one', 'nats://two'], jwt: 'signed' } });
});

t.test('enrolments that are signed, and those that are not', async (t) => {
  const revoked = (publicKey: string, atMs: number) => ({ kind: 'revoked_key', publicKey, host: h1, atMs }) as const;
  const rows: [string, StateRecord[], boolean][] = [
    ['a host that is not there', [], false],
    ['the token of another host', [hostRecord(h2, { join: withToken().join })], false],
    ['a host without a token', [hostRecord(h1)], false],
    ['another token', [withToken({ tokenHash: 'other' })], false],
    ['a token to the end of its time', [withToken({ untilMs: nowMs })], false],
    ['a token that another key has spent', [withToken({ spentBy: 'UOTHER' })], false],
    ['one that this key has spent: the answer was lost', [withToken({ spentBy: 'UNEW' })], true],
    ['a fenced host', [withToken({}, { fencedAtMs: 1 })], false],
    ['a key that was revoked in this second', [withToken(), revoked('UNEW', nowMs - 500)], false],
    ['a key that was revoked in the second before', [withToken(), revoked('UNEW', nowMs - 501)], true],
    ['beside another key that was revoked', [withToken(), revoked('UOTHER', nowMs)], true],
  ];
  for (const [name, records, isSigned] of rows) {
    const { prepared, signed } = await signedFor(enrol, ...records);
    t.match(prepared, { enrolment: { jwt: isSigned ? 'signed' : /^$/ } }, name);
    t.equal(signed.length, isSigned ? 1 : 0, `${name}: signatures`);
  }
});

t.test('renewals that are signed, and those that are not', async (t) => {
  const ask = { type: 'host.renew', host: h1, publicKey: 'U', atMs: nowMs, nonce: 'n', ...asker } as const;
  const rows: [string, StateRecord[], boolean][] = [
    ['the enrolled key', [hostRecord(h1, { publicKey: 'U' })], true],
    ['another key', [hostRecord(h1, { publicKey: 'UOTHER' })], false],
    ['a host that is not there', [], false],
    ['a fenced host', [hostRecord(h1, { publicKey: 'U', fencedAtMs: 1 })], false],
  ];
  for (const [name, records, isSigned] of rows) {
    const { prepared, signed } = await signedFor(ask, ...records);
    t.match(prepared, { enrolment: { jwt: isSigned ? 'signed' : /^$/ } }, name);
    t.equal(signed.length, isSigned ? 1 : 0, `${name}: signatures`);
  }
});

t.test('no other ask needs anything, and none waits for it', async (t) => {
  const { prepared, signed } = await signedFor(
    { type: 'tenant.put', tenant: acme, settings: {}, ...asker },
    withToken(),
  );
  t.same([prepared, signed], [undefined, []]);
});
