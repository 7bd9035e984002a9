import t from 'tap';
import { create } from '../../../../actors/domain/container/create.ts';
import { placeOn, want } from '../../../../actors/domain/container/transitions.ts';
import { desiredOf } from '../../../../actors/domain/desired.ts';
import type { TurnContext } from '../../../../actors/domain/turn.ts';
import type { ContainerRecord } from '../../../../schemas/api/container.ts';
import { containerId, operation, specOf } from '../../support.ts';
import { acme, contextOf, fleetHost, fleetOf, h1, stateOf } from '../../support/records.ts';

const fleet = fleetOf(fleetHost(h1));
const trace = '00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01';
const traced = { ...contextOf(fleet), requestId: 'r-1', trace };
const ofNoRequest = { ...contextOf(fleet), requestId: null };

const createAsk = () =>
  ({ type: 'container.create', tenant: acme, id: containerId(), op: operation(), spec: specOf('web') }) as const;
const createdIn = (context: TurnContext): ContainerRecord => {
  const ask = { ...createAsk(), idempotency: null, rid: 'r-1', budgetMs: 1000 };
  return create(stateOf(), ask, context).changes.records[0] as ContainerRecord;
};
const toldTo = (record: ContainerRecord) => [...desiredOf([record], h1)].map(({ cause }) => cause);

t.test('a host is told which request made the generation, and its trace', (t) => {
  t.same(toldTo(createdIn(traced)), [{ request_id: 'r-1', trace }]);
  t.same(toldTo(createdIn({ ...traced, trace: undefined })), [{ request_id: 'r-1' }]);
  const stopped = want(createdIn(traced), 'stopped', { ...traced, requestId: 'r-2', trace: undefined });
  t.same(toldTo(stopped), [{ request_id: 'r-2' }]);
  t.end();
});

t.test('a change of no request has no cause', (t) => {
  const created = createdIn(traced);
  const running: ContainerRecord = { ...created, observed: { ...created.observed, status: 'running' } };
  const moved = placeOn(running, fleetHost(h1), 'platform', ofNoRequest);
  t.notOk('cause' in moved);
  t.same(toldTo(moved), [undefined]);
  t.end();
});

t.test('a request that waits for a host is the cause of the placement', (t) => {
  const waiting = createdIn({ ...traced, fleet: fleetOf() });
  t.equal(waiting.placement.phase, 'unplaced');
  t.same(toldTo(placeOn(waiting, fleetHost(h1), 'platform', ofNoRequest)), [{ request_id: 'r-1', trace }]);
  t.end();
});

t.test('the cause of an earlier generation is not told', (t) => {
  const record = createdIn(traced);
  t.same(toldTo({ ...record, generation: record.generation + 1 }), [undefined]);
  t.end();
});
