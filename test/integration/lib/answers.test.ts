/** The change from a server that does not answer to another one. */
import { connect, credsAuthenticator } from '@nats-io/transport-node';
import { readFileSync } from 'node:fs';
import t from 'tap';
import { startNats } from '../../../dev/servers/nats.ts';
import { startNatsCluster } from '../../../dev/servers/nats-cluster.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import { Answers } from '../../../lib/nats/answers.ts';
import { createLog } from '../../../lib/log.ts';
import { connectNats, credentialsFile, natsSilenceLookMs } from '../../../lib/nats/connection.ts';
import { limits } from '../../../schemas/limits.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { until } from '../../support/until.ts';

t.setTimeout(150_000);
const bounds = { minMs: 10_000, maxMs: 60_000 };

function fakeClock() {
  let ms = 0;
  return {
    clock: { nowMs: () => ms, monotonicMs: () => ms },
    pass: (byMs: number) => {
      ms += byMs;
    },
  };
}

t.test('silence is what was asked and not answered', async (t) => {
  const { clock, pass } = fakeClock();
  const answers = new Answers(clock);
  pass(100_000);
  t.equal(answers.silentMs(), 0, 'nothing was asked');
  answers.asked();
  pass(1_000);
  answers.asked();
  pass(1_000);
  t.equal(answers.silentMs(), 2_000, 'since the first ask');
  answers.heard();
  pass(100_000);
  t.equal(answers.silentMs(), 0);
  answers.asked();
  pass(5_000);
  answers.reconnected();
  t.equal(answers.silentMs(), 0, 'what was asked over the last connection is not waited for');
});

t.test('the next server is tried later each time, until something is heard', async (t) => {
  const { clock, pass } = fakeClock();
  const answers = new Answers(clock);
  const waited: number[] = [];
  for (let move = 0; move < 5; move++) {
    answers.asked();
    let ms = 0;
    for (; !answers.isMoveDue(bounds, 0); ms += 1_000) pass(1_000);
    waited.push(ms);
    answers.moved();
    answers.reconnected();
  }
  t.same(waited, [10_000, 20_000, 40_000, 60_000, 60_000], 'bounded');
  answers.asked();
  answers.heard();
  answers.asked();
  pass(9_999);
  t.notOk(answers.isMoveDue(bounds, 0));
  pass(1);
  t.ok(answers.isMoveDue(bounds, 0), 'from the beginning again');
  t.notOk(answers.isMoveDue(bounds, 0.5), 'another client moves later');
});

t.test('a silent server is left for another one, every time', { timeout: 600_000 }, async (t) => {
  const cluster = await startNatsCluster({ dir: temporaryFolder(t) });
  t.teardown(() => cluster.stop());
  const witness = await connect({
    servers: [...cluster.urls],
    authenticator: credsAuthenticator(readFileSync(cluster.credsFile)),
    tls: { caFile: cluster.caFile, handshakeFirst: true },
  });
  t.teardown(() => witness.close());
  const { clock, pass } = fakeClock();
  const answers = new Answers(clock);
  let moves = 0;
  const nc = await connectNats(
    {
      servers: cluster.urls,
      name: 'mover',
      authenticator: credentialsFile(cluster.credsFile),
      tlsCaFile: cluster.caFile,
      isUrgent: true,
      answers,
      onMove: () => moves++,
    },
    createLog('test', 'silent'),
  );
  t.teardown(() => nc.close());
  for (let move = 1; move <= 5; move++) {
    const left = nc.getServer();
    const reconnected = (async () => {
      for await (const { type } of nc.status()) if (type === 'reconnect') return;
    })();
    answers.asked();
    pass(2 * limits.natsSilentMaxMs);
    await reconnected;
    t.equal(moves, move);
    t.not(nc.getServer(), left, `move ${move} ends at another server`);
    await nc.flush();
  }
  await sleep(2 * natsSilenceLookMs);
  t.equal(moves, 5, 'where nothing is asked, nothing moves');
});

t.test('the only server is not left while it answers pings, but for minutes of silence', async (t) => {
  const nats = await startNats({ dir: temporaryFolder(t) });
  t.teardown(() => nats.stop());
  const { clock, pass } = fakeClock();
  const answers = new Answers(clock);
  let moves = 0;
  const options = { servers: [nats.url], name: 'stayer', credsFile: nats.actorsCredsFile, isUrgent: true };
  const nc = await connectNats({ ...options, answers, onMove: () => moves++ }, createLog('test', 'silent'));
  t.teardown(() => nc.close());
  answers.asked();
  pass(limits.natsSilentMaxMs - 1);
  await sleep(3 * natsSilenceLookMs);
  t.equal(moves, 0);
  pass(limits.natsSilentMaxMs);
  await until('it has tried again', () => moves === 1);
});
