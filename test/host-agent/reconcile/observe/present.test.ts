import t from 'tap';
import { EngineError } from '../../../../host-agent/docker/errors.ts';
import { labels } from '../../../../host-agent/docker/ownership.ts';
import type { Summary } from '../../../../host-agent/docker/answers.ts';
import { createFaults } from '../../../../host-agent/faults.ts';
import { absent } from '../../../../host-agent/docker/observed.ts';
import { createPresentContainers, engineDegradedMs } from '../../../../host-agent/reconcile/observe/present.ts';
import { quietLog } from '../../../actors/support.ts';
import { id, nowMs, seen, tenant, up } from '../../support/decisions.ts';

const summary = (placement: number): Summary => ({
  Id: `d${placement}`,
  State: 'running',
  Status: 'Up 1 minute',
  Labels: { [labels.container]: id, [labels.tenant]: tenant, [labels.placement]: String(placement) },
});

function start() {
  const world = { ms: nowMs, listed: [summary(1)], failure: undefined as Error | undefined };
  const list = () => (world.failure === undefined ? Promise.resolve([...world.listed]) : Promise.reject(world.failure));
  const faults = createFaults(quietLog);
  const clock = { nowMs: () => world.ms, monotonicMs: () => world.ms };
  const present = createPresentContainers({ listAll: list }, faults, clock);
  return { world, faults, present };
}

t.test('nothing is known before the first list', async (t) => {
  const { present, world } = start();
  t.equal(present.all(), undefined);
  t.equal(present.lastListedMs(), null);
  t.notOk(present.note(id, seen(up)), 'a look before the first list is no news');
  world.ms += 5;
  t.equal((await present.list()).size, 0, 'what was there before');
  t.same([...(present.all()?.keys() ?? [])], [id]);
  t.equal(present.lastListedMs(), nowMs + 5);
});

t.test('a look corrects the list', async (t) => {
  const { present } = start();
  await present.list();
  t.notOk(present.note(id, seen(up)), 'as listed');
  t.ok(present.note(id, seen(up, { placement: 2 })), 'made again under another placement');
  t.equal(present.all()?.get(id)?.placement, 2);
  t.notOk(present.note(id, seen(up, { placement: Number.NaN })), 'a label that is not a number');
  t.ok(present.note(id, absent), 'gone');
  t.notOk(present.note(id, absent), 'known to be gone');
  t.equal(present.all()?.size, 0);
});

t.test('an engine that lists nothing for long is a fault of the host until it lists again', async (t) => {
  const { present, faults, world } = start();
  await present.list();
  world.failure = new EngineError('container list', { kind: 'refused', status: 500 }, 'database is locked');
  await t.rejects(present.list());
  t.equal(present.all()?.size, 1, 'the last list still counts');
  world.ms += engineDegradedMs - 1;
  await t.rejects(present.list());
  t.same(faults.list(), [], 'not for long');
  world.ms += 1;
  await t.rejects(present.list());
  t.match(faults.list(), [{ kind: 'engine_degraded', message: /database is locked/ }]);
  world.failure = undefined;
  await present.list();
  t.same(faults.list(), []);
  world.failure = new Error('again');
  await t.rejects(present.list());
  t.same(faults.list(), [], 'the time counts from the first failure in a row');
});
