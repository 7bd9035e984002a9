/**
 * Each program and server of `npm start` is killed in turn. `npm start` starts it again, and the
 * API serves as before.
 */
import { mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import t from 'tap';
import { findEngine } from '../../../dev/servers/engine.ts';
import { cacheFolder } from '../../../dev/paths.ts';
import { allProcesses } from '../../../dev/process/proc.ts';
import { canStartEngine, sharedEngine } from '../../support/servers.ts';
import { isGone, launch, type Dev, type Started } from './npm-start.ts';
import { clientOf } from '../support/client.ts';
import { eventually } from '../support/eventually.ts';

/** The names that the terminal shows, with a pattern of the process's command line. */
const programs = {
  'Docker engine (private)': /dockerd/,
  Redis: /redis-server/,
  registry: /docker-registry|registry.*serve/,
  'NATS with JetStream': /nats-server/,
  actors: /programs\/actors\.js/,
  gateway: /programs\/gateway\.js/,
  'host-agent': /programs\/host-agent\.js/,
} as const;
type Name = keyof typeof programs;

const backDeadlineMs = 120_000;

const read = (path: string): string => {
  try {
    return readFileSync(path, 'utf8');
  } catch {
    return ''; // the process has ended
  }
};
const parentOf = (pid: number): number =>
  Number(
    read(`/proc/${pid}/stat`)
      .replace(/^.*\) /s, '')
      .split(' ')[1],
  );

function pidOf(parent: number, name: Name): number {
  const found = allProcesses()
    .filter(({ pid }) => parentOf(pid) === parent)
    .filter(({ pid }) => programs[name].test(read(`/proc/${pid}/cmdline`).replaceAll('\0', ' ')));
  if (found.length !== 1) throw new Error(`${found.length} processes are ${name}`);
  return found[0]!.pid;
}

const countOf = (output: string, text: string): number => output.split(text).length - 1;

t.test('npm start restarts a killed program', { timeout: 600_000 }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'longshore-kill-'));
  t.teardown(() => rmSync(folder, { recursive: true, force: true, maxRetries: 5 }));
  const state = join(folder, 'state');
  const isPrivate = canStartEngine && (await findEngine({})) === undefined;
  const started: Started = launch(t, {
    ...process.env,
    DOCKER_HOST: isPrivate ? '' : await sharedEngine(t),
    LONGSHORE_STATE: state,
    LONGSHORE_CACHE: cacheFolder(process.env),
  });
  await started.says('Up after');
  const devFile = join(state, 'dev.json');
  const before = readFileSync(devFile, 'utf8');
  const dev = JSON.parse(before) as Dev;
  const client = await clientOf(dev.baseUrl, dev.tenants.demo.token);

  /**
   * Creates a container through the API, waits until it runs, and reads and deletes it. Like a
   * tenant, it repeats a create that fails during the outage.
   */
  const serves = async (name: string): Promise<void> => {
    const body = { name, ...dev.image, ports: [8080], cpu_limit: '0.1', mem_limit: '32m' };
    const made = await eventually(
      `${name} is created`,
      () => client.create(body, { 'idempotency-key': name }),
      ({ status }) => status === 200 || status === 201,
      backDeadlineMs,
    );
    const container = made.body.data;
    await eventually(
      `${name} runs`,
      () => client.wait(container, 'running'),
      ({ status, body }) => status === 200 && body.data.status === 'running',
      backDeadlineMs,
    );
    t.match((await client.get(container)).body, { data: { id: container.id, name } });
    t.equal((await client.remove(container)).status < 300, true);
  };

  const names = (Object.keys(programs) as Name[]).filter((name) => isPrivate || !name.startsWith('Docker'));
  for (const [index, name] of names.entries()) {
    await t.test(name, async (t) => {
      const pid = pidOf(started.pid, name);
      const runsAgain = `· ${name} runs again`;
      const timesBefore = countOf(started.output(), runsAgain);
      process.kill(pid, 'SIGKILL');
      await started.says(`! ${name} was ended by SIGKILL; starting it again.`);
      await eventually(
        `${name} runs again`,
        async () => countOf(started.output(), runsAgain),
        (times) => times === timesBefore + 1,
        backDeadlineMs,
      );
      t.not(pidOf(started.pid, name), pid, 'it is a new process');
      await serves(`after-${index}`);
      t.equal(readFileSync(devFile, 'utf8'), before, 'dev.json is unchanged');
    });
  }

  await t.test('Ctrl-C during the restart of a program leaves nothing behind', async (t) => {
    const times = countOf(started.output(), '! actors');
    process.kill(pidOf(started.pid, 'actors'), 'SIGKILL');
    await eventually(
      'the terminal shows that actors ended',
      async () => countOf(started.output(), '! actors'),
      (seen) => seen > times,
    );
    t.equal(await started.interrupt(), 0);
    await isGone(t, state, started);
  });
});
