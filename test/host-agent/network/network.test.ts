/** The one network of a host's containers: made once, and never two of it. */
import t from 'tap';
import type { Network } from '../../../host-agent/docker/answers.ts';
import type { Engine } from '../../../host-agent/docker/engine.ts';
import { networkName } from '../../../host-agent/docker/ownership.ts';
import { createNetworkKeeper, findNetwork, isNetworkGone } from '../../../host-agent/network/network.ts';
import { owner } from '../support/decisions.ts';

const ours = (Id: string, Created: string): Network => ({ Id, Created, Name: networkName(owner) });

/** An engine with these networks; `calls` has what was changed. */
function engineWith(...given: Network[]) {
  const networks = [...given];
  const calls: string[] = [];
  const state = { isFailing: false };
  const engine: Partial<Engine> = {
    networks: () => (state.isFailing ? Promise.reject(new Error('away')) : Promise.resolve([...networks])),
    createNetwork: (name) => {
      calls.push('create');
      networks.push({ Id: 'new', Created: '2030', Name: name });
      return Promise.resolve();
    },
    removeNetwork: (removed) => {
      calls.push(`remove ${removed}`);
      networks.splice(
        networks.findIndex(({ Id }) => Id === removed),
        1,
      );
      return Promise.resolve(true);
    },
  };
  return { engine: engine as Engine, calls, state };
}

t.test('the first containers of a host wait for one network', async (t) => {
  const { engine, calls } = engineWith({ ...ours('other', '2020'), Name: 'bridge' });
  t.equal(await findNetwork(engine, owner), undefined);
  const ensure = createNetworkKeeper(engine, owner);
  const found = await Promise.all([ensure(), ensure(), ensure()]);
  t.same(
    found.map((network) => network?.Id),
    ['new', 'new', 'new'],
  );
  t.match(await ensure(), { Id: 'new' });
  t.same(calls, ['create']);
});

t.test('of several of one name the oldest stays, on which containers may run', async (t) => {
  const { engine, calls } = engineWith(ours('second', '2026-02'), ours('first', '2026-01'), ours('third', '2026-03'));
  t.match(await createNetworkKeeper(engine, owner)(), { Id: 'first' });
  t.same(calls, ['remove second', 'remove third']);
});

t.test('a look that failed is no answer for the next', async (t) => {
  const { engine, state } = engineWith(ours('first', '2026-01'));
  const ensure = createNetworkKeeper(engine, owner);
  state.isFailing = true;
  await t.rejects(ensure(), { message: 'away' });
  state.isFailing = false;
  t.match(await ensure(), { Id: 'first' });
});

t.test('refusals that say that the network of a container is gone', (t) => {
  for (const [detail, isGone] of [
    ['network 1f0c9a not found', true],
    ['could not find a network matching network mode longshore-1: network longshore-1 not found', true],
    ['No such container: d1', false],
    ['driver failed programming external connectivity on endpoint', false],
  ] as const) {
    t.equal(isNetworkGone(detail), isGone, detail);
  }
  t.end();
});
