/** The supervisor of `npm start` with real processes. */
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { startRestartable, startServer } from '../../../dev/process/process.ts';
import { nextStart, steadyMs } from '../../../dev/stack/restarts.ts';
import { Supervisor } from '../../../dev/stack/supervisor.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { until } from '../../support/until.ts';

t.test('the pause before a restart grows with each failure', async (t) => {
  const rows = [
    { ends: 0, ranMs: 0, next: { ends: 1, pauseMs: 200 } },
    { ends: 1, ranMs: 10, next: { ends: 2, pauseMs: 400 } },
    { ends: 2, ranMs: steadyMs - 1, next: { ends: 3, pauseMs: 800 } },
    { ends: 20, ranMs: 0, next: { ends: 21, pauseMs: 30_000 } },
    { ends: 20, ranMs: steadyMs, next: { ends: 1, pauseMs: 200 } },
  ];
  for (const { ends, ranMs, next } of rows) {
    t.same(nextStart(ends, ranMs), next, `${ends} ends before, ran ${ranMs} ms`);
  }
});

/** A process that is ready at once, and exits with code 3 if the file `ends` exists. */
const programOf = (folder: string) => {
  const ends = join(folder, 'ends');
  return {
    ends,
    launch: (signal?: AbortSignal) =>
      startServer({
        name: 'program',
        command: '/bin/sh',
        args: ['-c', `trap 'exit 0' TERM; if [ -e '${ends}' ]; then exit 3; fi; while :; do sleep 1 & wait; done`],
        env: process.env,
        cwd: folder,
        logFile: join(folder, 'program.log'),
        ready: async () => Promise.resolve(!existsSync(ends)),
        readyDeadlineMs: 30_000,
        stopGraceMs: 5_000,
        ...(signal === undefined ? {} : { signal }),
      }),
  };
};

t.test('a killed program is restarted, with growing pauses and a line for each failure', async (t) => {
  const { ends, launch } = programOf(temporaryFolder(t));
  const printed: string[] = [];
  const part = await startRestartable(launch);
  const supervisor = new Supervisor({ say: (text) => printed.push(text), nowMs: () => 0 });
  t.teardown(async () => {
    await supervisor.stop();
    await part.stop();
  });
  supervisor.watch('program', part);
  const { pid } = part.server();
  await part.server().kill9();
  await until('it runs again', () => printed.some((line) => line.startsWith('· program runs again')));
  t.not(part.server().pid, pid);
  t.match(printed[0], /^! program was ended by SIGKILL; starting it again\. Its log: .*program\.log$/);

  writeFileSync(ends, '');
  await part.server().kill9();
  await until('a fourth end', () => printed.some((line) => line.includes('for the 4th time in a row')));
  t.match(
    printed.filter((line) => line.startsWith('!')).slice(1),
    [
      /^! program was ended by SIGKILL, for the 2nd time in a row; starting it again in 0\.4 s\./,
      /^! program did not start, for the 3rd time in a row; starting it again in 0\.8 s\.$/,
      /^! program did not start, for the 4th time in a row; starting it again in 1\.6 s\.$/,
    ],
    'pauses grow',
  );
  t.match(
    printed.find((line) => line.startsWith('✗')),
    /^✗ program: program ended with exit code 3/,
  );
  rmSync(ends);
  await until('it runs', () => printed.at(-1)?.startsWith('· program runs again') === true);
  t.equal(part.server().exit(), undefined);
});

t.test('a stop cancels a running start', async (t) => {
  const folder = temporaryFolder(t);
  const never = join(folder, 'never');
  let starts = 0;
  const { launch } = programOf(folder);
  const part = await startRestartable(async (signal) => {
    if (starts++ === 0) return launch();
    return startServer({
      name: 'program',
      command: '/bin/sh',
      args: ['-c', 'echo $$ >started; while :; do sleep 1 & wait; done'],
      env: process.env,
      cwd: folder,
      logFile: join(folder, 'program.log'),
      ready: async () => Promise.resolve(existsSync(never)),
      readyDeadlineMs: 600_000,
      stopGraceMs: 5_000,
      ...(signal === undefined ? {} : { signal }),
    });
  });
  const supervisor = new Supervisor({ say: () => undefined, nowMs: () => 0 });
  supervisor.watch('program', part);
  await part.server().kill9();
  await until('the restart has begun', () => existsSync(join(folder, 'started')));
  await supervisor.stop();
  await part.stop();
  t.not(part.server().exit(), undefined, 'the stop does not wait for the deadline of the start');
});
