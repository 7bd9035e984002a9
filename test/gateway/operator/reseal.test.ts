import t from 'tap';
import { Vault } from '../../../gateway/vault/vault.ts';
import { networkPlace } from '../../../gateway/vpn/service/networks/authority.ts';
import { resealAll } from '../../../gateway/operator/reseal.ts';
import type { Question } from '../../../lib/rpc/partition-client.ts';
import type { NetworkName } from '../../../schemas/ids.ts';
import type { StaleSecret } from '../../../schemas/records/sealed.ts';
import { okData, refusal, type AnswerOf } from '../support.ts';
import { forageWith } from '../vpn/forage.ts';

const keyOf = (id: string, byte: number) => ({ id, key: Buffer.alloc(32, byte) });
const [before, lost] = [new Vault([keyOf('old', 1)]), new Vault([keyOf('lost', 2)])];
const vault = new Vault([keyOf('new', 3), keyOf('old', 1)]);
const secret = (name: string, under: Vault): StaleSecret => {
  const place = networkPlace(name as NetworkName, 'ca');
  return { place, sealed: under.seal(place, name) };
};

/** Owners of partitions that keep these secrets, and tell a page of them at a time. */
function stage(kept: StaleSecret[][], pageItems = 2) {
  const ofPartition = (question: Question): StaleSecret[] =>
    kept['partition' in question ? question.partition : 0] ?? [];
  const replace = (question: Question): AnswerOf => {
    if (question.type !== 'secret.replace') throw new Error(question.type);
    const secrets = ofPartition(question);
    for (const { place, before, after } of question.items) {
      const at = secrets.findIndex(({ sealed }) => sealed === before);
      secrets.splice(at, 1);
      opened.push(vault.open(place, after));
    }
    return okData({ replaced: question.items.length });
  };
  const opened: string[] = [];
  const { forage, types, log } = forageWith({
    'secret.stale': (question) => okData(ofPartition(question).slice(0, pageItems)),
    'secret.replace': replace,
  });
  const run = (monotonicMs = 0) => {
    const clock = { nowMs: () => 0, monotonicMs: () => monotonicMs };
    return resealAll({ origin: { rid: 'r' }, deadlineMs: 1000 }, { actors: forage.actors, vault, clock, log });
  };
  return { run, types, opened, log };
}

t.test('every secret of every partition is sealed under the current key, page by page', async (t) => {
  const { run, types, opened } = stage([['a', 'b', 'c'].map((name) => secret(name, before)), [secret('d', before)]]);
  t.same(await run(), { key_id: 'new', resealed: 4, remaining: 0 });
  t.same(opened, ['a', 'b', 'c', 'd']);
  const page = ['secret.stale', 'secret.replace'];
  t.same(types(), [...page, ...page, 'secret.stale', ...page, 'secret.stale']);
});

t.test('a secret under a key that is lost stays as it is, and is counted and logged', async (t) => {
  const { run, log } = stage([[secret('x', lost), secret('a', before)], [secret('b', before)]]);
  t.same(await run(), { key_id: 'new', resealed: 2, remaining: 1 });
  t.match(log.events[0], {
    event: 'secret_open_failed',
    fields: { requestId: 'r', of: 'network', field: 'ca', why: 'unknown_key' },
  });
  t.notMatch(JSON.stringify(log.events), '"x"', 'the log names no network and no peer');
});

t.test('past the deadline nothing is replaced any more, and what is left is counted', async (t) => {
  const { run, types } = stage([[secret('a', before)], [secret('b', before)]]);
  t.same(await run(1001), { key_id: 'new', resealed: 0, remaining: 2 });
  t.same(types(), ['secret.stale', 'secret.stale']);
});

t.test('an owner that refuses ends the request with its answer', async (t) => {
  const { forage, log } = forageWith({ 'secret.stale': () => refusal('unavailable') });
  const { actors, clock } = forage;
  await t.rejects(resealAll({ origin: { rid: 'r' }, deadlineMs: 1000 }, { actors, vault, clock, log }), {
    name: 'Refusal',
    result: { code: 'unavailable' },
  });
});
