import t from 'tap';
import {
  RevocationLists,
  crlLifetimeMs,
  crlFreshMs,
} from '../../../../../gateway/vpn/service/networks/revocation-lists.ts';
import type { NetworkName } from '../../../../../schemas/ids.ts';
import { limits } from '../../../../../schemas/limits.ts';
import { okMaterial, refusal, type AnswerOf } from '../../../support.ts';
import { caPem } from '../../support.ts';
import { forageWith, networkNow } from '../../forage.ts';

const demo = 'demo' as NetworkName;
const asker = { origin: { rid: 'r' }, deadlineMs: 1000 };
const entry = (serial: string) => ({ serial, atMs: 1, reason: 'keyCompromise' });

function stage(answer: () => AnswerOf = () => okMaterial(networkNow())) {
  const pages = [
    { data: [entry('01'), entry('02')], next: '02', now_ms: 5_000_000 },
    { data: [entry('03')], next: null, now_ms: 6_000_000 },
  ];
  const { forage, keyring, jobs, types } = forageWith({
    'network.material': answer,
    'network.revocations': (question) => {
      const after = 'after' in question ? question.after : undefined;
      return { code: 'ok', body: JSON.stringify(pages[after === '' ? 0 : 1]) };
    },
  });
  const time = { nowMs: 0 };
  const clock = { nowMs: () => 0, monotonicMs: () => time.nowMs };
  const lists = new RevocationLists(forage.actors, forage.networks, clock);
  return { time, jobs, types, of: (network = demo) => lists.of(asker, network, keyring) };
}

t.test('a list has every page, and the number of the first: what came later is on the next', async (t) => {
  const { of, jobs } = stage();
  t.same(await of(), Buffer.from('crl'));
  const input = {
    caPem,
    caKeyPem: 'ca key',
    number: 5_000_000,
    thisUpdateMs: 5_000_000 - limits.certificateBackdateMs,
    nextUpdateMs: 5_000_000 + crlLifetimeMs,
    entries: ['01', '02', '03'].map(entry),
  };
  t.same(jobs, [{ kind: 'crl', input, deadlineMs: 1000 }]);
});

t.test('requests of a few seconds share one list', async (t) => {
  const { of, jobs, time } = stage();
  await Promise.all([of(), of()]);
  time.nowMs = crlFreshMs - 1;
  await of();
  t.equal(jobs.length, 1);
  time.nowMs++;
  await of();
  t.equal(jobs.length, 2);
  await of('other' as NetworkName);
  t.equal(jobs.length, 3, 'each network has its own');
});

t.test('a failure is not kept', async (t) => {
  let answer = refusal('not_found');
  const { of, jobs } = stage(() => answer);
  await t.rejects(of(), { name: 'Refusal', result: { code: 'not_found' } });
  answer = okMaterial(networkNow());
  t.same(await of(), Buffer.from('crl'));
  t.equal(jobs.length, 1);
});
