import t from 'tap';
import { createVpnActors } from '../../../../gateway/vpn/service/actors.ts';
import type { Outcome, Question } from '../../../../lib/rpc/partition-client.ts';
import type { NetworkName, OperationId } from '../../../../schemas/ids.ts';

const asker = { origin: { rid: 'r' }, deadlineMs: 1000 };

function actorsWith(answer: (question: Question) => Outcome, partitions: number | 'unknown' = 2) {
  const asked: unknown[] = [];
  const actors = createVpnActors({
    ask: (lane, question, deadlineMs) => {
      asked.push({ lane, ...question, deadlineMs });
      return Promise.resolve(answer(question));
    },
    partitions: () => (partitions === 'unknown' ? undefined : partitions),
    newOperationId: () => 'operation-00000000' as OperationId,
  });
  return { actors, asked };
}

t.test('an ask carries the request’s id and deadline, a write an operation id', async (t) => {
  const { actors, asked } = actorsWith(() => ({ code: 'no_content', body: '' }));
  const network = 'office' as NetworkName;
  await actors.ask(asker, { type: 'network.get', network });
  await actors.askWrite(asker, { type: 'network.remove', network });
  t.match(asked, [
    { lane: 'read', type: 'network.get', rid: 'r', deadlineMs: 1000 },
    { lane: 'write', type: 'network.remove', rid: 'r', op: 'operation-00000000' },
  ]);
});

t.test('a refusal of an owner ends the request with that answer', async (t) => {
  const { actors } = actorsWith(() => ({ code: 'not_found', body: '' }));
  await t.rejects(actors.read(asker, { type: 'network.material', network: 'x' as NetworkName }), {
    name: 'Refusal',
    result: { code: 'not_found' },
  });
});

t.test('until the cluster is known, there are no partitions to ask', async (t) => {
  const { actors, asked } = actorsWith(() => ({ code: 'ok', body: '' }), 'unknown');
  await t.rejects(actors.countPeers(asker), { name: 'Refusal', message: 'answered unavailable' });
  t.same(asked, []);
});
