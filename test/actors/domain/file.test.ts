/** Contents of files: put before the document that names them, and forgotten when unused. */
import { createHash } from 'node:crypto';
import t from 'tap';
import { expiredFiles, get, put, refusalOfMissing } from '../../../actors/domain/file/files.ts';
import type { StateRecord } from '../../../actors/domain/records.ts';
import type { Turn } from '../../../actors/domain/turn.ts';
import type { ContainerRecord } from '../../../schemas/api/container.ts';
import { limits } from '../../../schemas/limits.ts';
import { defaultPolicy } from '../../../schemas/api/policy.ts';
import { keys } from '../../../schemas/records/buckets.ts';
import { operation } from '../support.ts';
import {
  acme,
  agentKeyOf,
  apply,
  container,
  contextOf,
  fleetHost,
  fleetOf,
  h1,
  h2,
  placedOn,
  stateOf,
} from '../support/records.ts';

const fleet = fleetOf(fleetHost(h1), fleetHost(h2));
const ride = { rid: 'r', budgetMs: 1000 };
const of = (text: string) => ({
  sha256: createHash('sha256').update(text).digest('hex'),
  content: Buffer.from(text).toString('base64'),
  bytes: Buffer.byteLength(text),
});
const [a, b] = [of('a'), of('b')];
const useOf = ({ sha256, bytes }: typeof a) => ({ sha256, bytes, mode: 0o444 });

function world(...records: readonly StateRecord[]) {
  const state = stateOf(...records);
  const putAt = (nowMs: number, ...files: (typeof a)[]): Turn => {
    const turn = put(
      state,
      { type: 'file.put', tenant: acme, files, op: operation(), ...ride },
      contextOf(fleet, nowMs),
    );
    apply(state, turn.changes);
    return turn;
  };
  const sweepAt = (nowMs: number): readonly string[] => {
    const changes = expiredFiles(state, nowMs);
    apply(state, changes);
    return changes.deletes;
  };
  return { state, putAt, sweepAt };
}
const using = (file: typeof a, more: Partial<ContainerRecord> = {}): ContainerRecord => {
  const record = container({ placement: placedOn(h1), ...more });
  return { ...record, spec: { ...record.spec, files: { '/etc/a': useOf(file) } } };
};

t.test('a content that no container uses is forgotten after a while', (t) => {
  const { state, putAt, sweepAt } = world();
  const keyOf = ({ sha256 }: typeof a): string => keys.file(acme, sha256);
  t.equal(putAt(1000, a, b).changes.records.length, 2);
  t.equal(state.tenant(acme).files.bytes, 2);
  t.equal(putAt(2000, a).changes.records.length, 0, 'what was just put is not put again');
  const user = using(a);
  state.put(user);
  t.same(sweepAt(1000 + limits.fileUnusedMs - 1), []);
  t.same(sweepAt(1000 + limits.fileUnusedMs), [keyOf(b)]);
  const later = 10 * limits.fileUnusedMs;
  t.same(sweepAt(later), [], 'a container has the other');
  const after = using(b, { id: user.id });
  putAt(later, b);
  state.put({ ...after, update: { previous: user } as unknown as NonNullable<ContainerRecord['update']> });
  t.same(sweepAt(2 * later), [], 'it may go back to it');
  state.put(after);
  putAt(2 * later, a);
  t.same(sweepAt(2 * later), [], 'put again, it waits again for its document');
  t.same(sweepAt(3 * later), [keyOf(a)]);
  state.delete(keys.container(acme, user.id));
  t.same(sweepAt(3 * later), [keyOf(b)], 'with its container');
  t.equal(state.tenant(acme).files.bytes, 0);
  t.same([...state.tenantsWithUnusedFiles()], []);
  t.end();
});

t.test('nothing is forgotten while a record of a container is damaged', (t) => {
  const { state, putAt, sweepAt } = world();
  putAt(1, a);
  state.quarantine(keys.container(acme, container().id));
  t.same(sweepAt(limits.fileUnusedMs * 2), []);
  t.end();
});

t.test('the contents of a tenant have a bound, each counted once', (t) => {
  const { putAt } = world();
  const large = (text: string) => ({ ...of(text), bytes: limits.filesOfTenantBytes / 2 });
  t.equal(putAt(1, large('x')).reply.code, 'no_content');
  t.equal(putAt(1, large('y')).reply.code, 'no_content');
  t.match(putAt(1, a).reply, { code: 'conflict', body: /more than 33554432 bytes/ });
  t.equal(putAt(limits.fileUnusedMs, large('x')).reply.code, 'no_content', 'one that is there takes no more');
  t.end();
});

t.test('a document is refused whose contents are not there', (t) => {
  const { state, putAt } = world();
  const { spec } = using(a);
  const declaration = { spec, policy: defaultPolicy, secrets: { env: {}, files: {} } };
  const ask = { type: 'spec.put', tenant: acme, id: container().id, declaration, op: operation(), ...ride } as const;
  t.match(refusalOfMissing(state, ask)?.reply, { code: 'unavailable' });
  putAt(1, a);
  t.equal(refusalOfMissing(state, ask), undefined);
  state.quarantine(keys.file(acme, a.sha256));
  t.match(refusalOfMissing(state, ask)?.reply, { code: 'unavailable' }, 'damaged');
  t.equal(putAt(2, a).changes.records.length, 1, 'and is put again');
  t.end();
});

t.test('a host gets the files of its containers alone', (t) => {
  const record = using(a);
  const { state, putAt } = world(record);
  putAt(1, a, b);
  const ask = { type: 'file.get', tenant: acme, ...ride } as const;
  const from = (host: typeof h1, user: string, ...hashes: string[]) =>
    get(state, { ...ask, hashes, host: { container: record.id, by: { host, user } } }, contextOf(fleet)).reply;
  t.same(from(h1, agentKeyOf(h1), a.sha256), { code: 'ok', body: JSON.stringify({ data: [a.content] }) });
  t.match(from(h1, agentKeyOf(h1), b.sha256), { code: 'forbidden', body: /no such file/ });
  t.match(from(h2, agentKeyOf(h2), a.sha256), { code: 'forbidden', body: /no such container/ });
  t.match(from(h1, agentKeyOf(h2), a.sha256), { code: 'forbidden', body: /not enrolled/ });
  const shown = get(state, { ...ask, hashes: [b.sha256, a.sha256] }, contextOf(fleet)).reply;
  t.same(shown, { code: 'ok', body: JSON.stringify({ data: [b.content, a.content] }) }, 'to its tenant');
  t.match(get(state, { ...ask, hashes: ['0'] }, contextOf(fleet)).reply, { code: 'internal' });
  t.end();
});
