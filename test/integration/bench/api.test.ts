/** The part of the benchmark that Longshore may break by a change: it runs whole, without load. */
import t from 'tap';
import { check } from '../../../bench/api/checks.ts';
import { callerOf, compute, prepareGround, seed } from '../../../bench/api/ground.ts';
import { startLongshore } from '../../../bench/api/systems/longshore.ts';
import { toolHere } from '../../../dev/fetch/tools.ts';
import { temporaryFolder } from '../../support/folder.ts';

t.test('Longshore starts for the benchmark, takes its containers and passes its checks', async (t) => {
  const bench = {
    env: process.env,
    folder: temporaryFolder(t),
    signal: new AbortController().signal,
    isShort: true,
    largestFleet: 1,
    tool: toolHere,
  };
  const ground = { ...(await prepareGround(bench, 3)), scope: t };
  const longshore = await startLongshore(ground);
  t.match(await check(longshore, ground), /^Longshore: /);
  const declared = await seed(longshore.systems[0], ground, ground.tenants, 2);
  t.equal(declared.length, 6);
  for (const system of longshore.systems) {
    for (const { tenant, id } of declared) {
      const client = await callerOf(system, tenant.token);
      t.equal((await client.call('GET', `${compute}/${id}`)).status, 200, system.name);
    }
  }
});
