/** The agent on a full disk: a small tmpfs. */
import t, { type Test } from 'tap';
import { existsSync, readFileSync, rmSync } from 'node:fs';
import { join } from 'node:path';
import { loadSeed } from '../../../../host-agent/link/identity/identity.ts';
import { fill, mountSmall, skipWithoutMounts as skip } from '../../../host-agent/support/disk.ts';
import { startRig, steady } from '../../../host-agent/support/rig.ts';
import { until } from '../../../support/until.ts';

async function startGround(t: Test) {
  const rig = await startRig(t);
  mountSmall(t, rig.stateDir, 2);
  return rig;
}

t.test('a first start on a full disk', { skip }, async (t) => {
  const { controlPlane, stateDir, agent, script } = await startGround(t);
  const { id } = controlPlane.desire(await script('steady', steady));
  const ballast = fill(stateDir);

  await t.test('without a key the agent ends, and the join token is not used', async (t) => {
    const refused = agent();
    t.equal(await refused.exited(), 1);
    t.match(await refused.logged('configuration_invalid'), {
      fault: /ENOSPC.*free space.*the join token has not been used/,
    });
    t.notOk(refused.lines.some(({ event }) => event === 'host_enrolled'));
  });

  await t.test('with a key it enrols, works, and reports the fault', async (t) => {
    rmSync(ballast);
    await loadSeed(stateDir);
    const again = fill(stateDir);
    const process = agent();
    await controlPlane.reported(id, ({ observation }) => observation.status === 'running');
    await until(
      () => `a beat that names the fault: ${JSON.stringify(controlPlane.beats().at(-1))}`,
      () =>
        controlPlane
          .beats()
          .at(-1)
          ?.faults?.some(({ kind }) => kind === 'state_unwritable'),
    );
    t.notOk(existsSync(join(stateDir, 'identity.json')));
    await process.kill9();
    const second = agent();
    await second.logged('session_started');
    t.pass('the token is good for the key that it was spent for');
    rmSync(again);
    await second.logged('host_fault_cleared');
    await second.stop();
    t.ok(existsSync(join(stateDir, 'identity.json')));
    const third = agent({ LONGSHORE_JOIN_TOKEN: '' });
    await third.logged('session_started');
    await third.stop();
  });
});

t.test('a full disk', { skip }, async (t) => {
  const { controlPlane, stateDir, agent, script } = await startGround(t);
  const image = await script('steady', steady);
  const first = agent();
  const before = controlPlane.desire(image);
  await controlPlane.reported(before.id, ({ observation }) => observation.status === 'running');
  await first.kill9();
  const ballast = fill(stateDir);
  const sessionOnDisk = (): number =>
    (JSON.parse(readFileSync(join(stateDir, 'session.json'), 'utf8')) as { session: number }).session;
  const kept = sessionOnDisk();

  const heard = controlPlane.beats().length;
  const process = agent();
  const faultsSince = () => controlPlane.beats().slice(heard).at(-1)?.faults;

  await t.test('the agent starts, gets its session, sends beats, and reports the fault', async (t) => {
    const { session } = await process.logged('session_started');
    t.ok(Number(session) > kept);
    await until(
      () => `a beat that names the fault: ${JSON.stringify(controlPlane.beats().at(-1))}`,
      () => faultsSince()?.some(({ kind }) => kind === 'state_unwritable'),
    );
    t.match(faultsSince()?.[0]?.message, /ENOSPC/);
    t.match(await process.metrics(), 'longshore_agent_fault{kind="state_unwritable"} 1');
    t.equal(sessionOnDisk(), kept);
  });

  await t.test('it continues to work', async (t) => {
    const added = controlPlane.desire({ ...image, tenant: 'other' });
    await controlPlane.reported(added.id, ({ observation }) => observation.status === 'running');
    const errors = process.lines.filter(({ event, level }) => level === 'error' && event === 'host_fault_raised');
    t.equal(errors.length, 1, 'one error, however many files could not be written');
  });

  await t.test('with space again, all files are written and the fault ends', async (t) => {
    rmSync(ballast);
    await process.logged('host_fault_cleared');
    await until('a beat without the fault', () => faultsSince()?.length === 0);
    t.equal(sessionOnDisk(), Number((await process.logged('session_started')).session));
    t.match(await process.metrics(), 'longshore_agent_fault{kind="state_unwritable"} 0');
    t.same(controlPlane.faults(), []);
    await process.stop();
  });
});
