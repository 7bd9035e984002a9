import t from 'tap';
import { readdirSync } from 'node:fs';
import { join } from 'node:path';
import { limits } from '../../../../schemas/limits.ts';
import { sleep } from '../../../../lib/time/backoff.ts';
import { asRead, conflicts, counting, has, linesOf, upTo } from './captured.ts';
import { startRig } from '../../../host-agent/support/rig.ts';
import { until } from '../../../support/until.ts';

for (const LOG_SOURCE of ['files', 'engine']) {
  t.test(`with LOG_SOURCE=${LOG_SOURCE}`, async (t) => {
    await t.test('both streams, long lines and invalid bytes are captured', async (t) => {
      const { controlPlane, agent, script } = await startRig(t);
      agent({ LOG_SOURCE });
      const speak = [
        `echo out; echo err >&2; echo; printf 'a\\377b\\n'`,
        `head -c ${limits.logLineBytes + 10} /dev/zero | tr '\\000' x; echo`,
        `printf 'no newline at the end'; echo; echo end`,
        `trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done`,
      ].join('; ');
      const { id } = controlPlane.desire(await script('speaking', speak));
      const read = asRead(await linesOf(controlPlane, id, has('end')));
      const out = read.filter(({ stream }) => stream === 'stdout').map(({ line }) => line);
      t.same(
        out.map((line) => (line.startsWith('xx') ? line.length : line)),
        ['out', '', 'a\ufffdb', limits.logLineBytes, 10, 'no newline at the end', 'end'],
      );
      t.same(
        read.filter(({ stream }) => stream === 'stderr').map(({ line }) => line),
        ['err'],
      );
      t.ok(read.every(({ ts }) => /^\d{4}-.*Z$/.test(ts)));
    });

    await t.test('lines of about 16 KiB, where the engine cuts them, are captured', async (t) => {
      const { controlPlane, agent, script } = await startRig(t);
      agent({ LOG_SOURCE });
      const cut = limits.logLineBytes;
      const sizes = [cut - 1, cut, cut + 1, 2 * cut];
      const say = sizes.map((size) => `head -c ${size} /dev/zero | tr '\\000' x; echo; echo after ${size}`);
      const wait = `trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done`;
      const { id } = controlPlane.desire(await script('cut', [...say, wait].join('; ')));
      const read = asRead(await linesOf(controlPlane, id, has(`after ${2 * cut}`)));
      t.same(
        read.map(({ line }) => (line.startsWith('x') ? line.length : line)),
        [cut - 1, `after ${cut - 1}`, cut, `after ${cut}`, cut, 1, `after ${cut + 1}`, cut, cut, `after ${2 * cut}`],
        'longer lines are cut, and no empty line follows',
      );
    });

    await t.test('no line is lost or doubled over kills of the agent and a restart of NATS', async (t) => {
      const { controlPlane, agent, script } = await startRig(t);
      const total = 2000;
      const count = [
        'n=0',
        `while [ $n -lt ${total} ]; do n=$((n+1)); echo "out $n"; echo "err $n" >&2; [ $((n % 100)) -eq 0 ] && sleep 0.3; done`,
        `echo done; trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done`,
      ].join('; ');
      const image = await script('counting', count);
      let process = agent({ LOG_SOURCE });
      const { id } = controlPlane.desire(image);
      await linesOf(controlPlane, id, (read) => read.length > 100);
      await process.kill9();
      process = agent({ LOG_SOURCE });
      await process.logged('session_started');
      await sleep(700);
      await controlPlane.nats.kill9();
      await sleep(700);
      await controlPlane.nats.restart();
      await sleep(700);
      await process.kill9();
      agent({ LOG_SOURCE });
      const captured = await linesOf(controlPlane, id, has('done'));
      const read = asRead(captured);
      t.same(counting(read, 'out '), upTo(total));
      t.same(counting(read, 'err '), upTo(total));
      t.same(conflicts(captured), []);
      t.comment(`${captured.length - read.length} lines were sent twice`);
    });

    await t.test('lines over the rate wait in the engine’s files, and none is lost', async (t) => {
      const { controlPlane, agent, script } = await startRig(t);
      agent({ LOG_SOURCE, LOG_RATE_CONTAINER_BYTES: '300000', LOG_RATE_BURST: '100ms' });
      const total = 4000;
      const padding = 'x'.repeat(80);
      const count = [
        'n=0',
        `while [ $n -lt ${total} ]; do n=$((n+1)); echo "${padding} $n"; done`,
        `echo done; trap 'exit 0' TERM; while :; do sleep 1 & wait $!; done`,
      ].join('; ');
      const { id } = controlPlane.desire(await script('bursting', count));
      const read = asRead(await linesOf(controlPlane, id, has('done')));
      t.same(counting(read, `${padding} `), upTo(total));
      t.same(
        read.filter(({ stream }) => stream === 'stderr'),
        [],
        'no mark says that lines are lost',
      );
    });
  });
}

t.test('lines of a container’s runs are in order', async (t) => {
  const { controlPlane, agent, script } = await startRig(t);
  agent();
  const { id } = controlPlane.desire(await script('again', 'echo up; sleep 0.2; echo down; exit 1'));
  const captured = await linesOf(controlPlane, id, (read) => read.length >= 6);
  const read = asRead(captured).map(({ line }) => line);
  t.same(read.slice(0, 6), ['up', 'down', 'up', 'down', 'up', 'down']);
  t.equal(captured.length, asRead(captured).length, 'nothing was sent twice');
});

t.test('the last lines of a container that is removed', async (t) => {
  const { controlPlane, engine, agent, script, stateDir } = await startRig(t);
  let process = agent();
  const words = `trap 'echo last words; exit 0' TERM; echo first; while :; do sleep 1 & wait $!; done`;
  const image = await script('leaving', words);

  await t.test('are captured before it goes', async () => {
    const { id } = controlPlane.desire(image);
    await linesOf(controlPlane, id, has('first'));
    controlPlane.desire({ id, desired: 'removed' });
    await controlPlane.reported(id, ({ gone }) => gone);
    await linesOf(controlPlane, id, has('last words'));
  });

  await t.test('wait on disk while the control plane cannot take them, also over a kill of the agent', async (t) => {
    const { id } = controlPlane.desire(image);
    await linesOf(controlPlane, id, has('first'));
    await controlPlane.capture(false);
    controlPlane.desire({ id, desired: 'removed' });
    await controlPlane.reported(id, ({ gone }) => gone);
    t.same(await engine.containers(id), []);
    const spool = join(stateDir, 'spool');
    t.equal(readdirSync(spool).length, 1);
    await process.kill9();
    await controlPlane.capture(true);
    process = agent();
    const captured = await linesOf(controlPlane, id, has('last words'));
    t.same(
      asRead(captured).map(({ line }) => line),
      ['first', 'last words'],
    );
    await until('an empty spool', () => readdirSync(spool).length === 0 || undefined);
  });
});
