/** Runs that the agent sees on its engine, and what is on its disk of them. */
import t from 'tap';
import { createCachedEngine } from '../../../host-agent/docker/cached-engine.ts';
import { createEngine } from '../../../host-agent/docker/engine.ts';
import { labels } from '../../../host-agent/docker/ownership.ts';
import { createSampler } from '../../../host-agent/usage/sampler.ts';
import type { ContainerId } from '../../../schemas/ids.ts';
import { quietLog } from '../../actors/support.ts';
import { EngineModel } from '../../support/engine/model.ts';
import { transportTo } from '../../support/engine/transport.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { owner, tenant } from '../support/decisions.ts';
import { storeIn } from './support.ts';

const id = '0190a000-0000-7000-8000-000000000001' as ContainerId;

t.test('a run is on the disk before its engine forgets it', async (t) => {
  const model = new EngineModel({ hasEveryImage: true });
  const cached = createCachedEngine(createEngine(transportTo(model)), owner, () => performance.now());
  const stateDir = temporaryFolder(t);
  const store = await storeIn(stateDir, { nowMs: Date.now() - 1000, steadyMs: 0 });
  t.teardown(() => store.flush());
  const { sampled: engine } = createSampler({
    engine: cached,
    cgroups: undefined,
    store,
    isEngineUp: () => true,
    intervalMs: 60_000,
    onSampled: () => {},
    board: undefined,
    onEnded: () => {},
    log: quietLog,
  });
  const ours = { [labels.cluster]: owner.cluster, [labels.host]: owner.host };
  const body = { Image: 'i', Labels: { ...ours, [labels.tenant]: tenant, [labels.container]: id }, HostConfig: {} };
  const made = await engine.create('one', body);
  if (made.kind !== 'created') throw new Error(made.kind);
  const { id: dockerId } = made;
  /** Runs that an agent knows which is started now, after a kill. */
  const onDisk = async () => {
    const again = await storeIn(stateDir, { nowMs: Date.now(), steadyMs: 1000 });
    return [...again.ledger.state().runs.values()].map(({ isOver, startedAt }) => ({ isOver, startedAt }));
  };
  const ran = async (): Promise<string> => {
    await engine.start(dockerId);
    await engine.inspect(dockerId);
    await engine.stop(dockerId, 1000);
    const ended = await engine.inspect(dockerId);
    return ended?.State.StartedAt ?? '';
  };
  const first = await ran();
  t.same(await onDisk(), [], 'while the engine knows it');
  const second = await ran();
  t.same(await onDisk(), [{ isOver: true, startedAt: first }], 'it was started again');
  await engine.remove(dockerId);
  t.same(await onDisk(), [{ isOver: true, startedAt: second }], 'it was removed');
});
