/** The ports of `npm start`: each start has its own, and trusts no other program on them. */
import { once } from 'node:events';
import { existsSync, mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import { join } from 'node:path';
import t from 'tap';
import { cacheFolder } from '../../../dev/paths.ts';
import { portNames, type Ports } from '../../../dev/stack/ports.ts';
import { hasNameLocks } from '../../../lib/process/name-lock.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { sharedEngine } from '../../support/servers.ts';
import { until } from '../../support/until.ts';
import { isGone, launch } from './npm-start.ts';

const skip = !hasNameLocks && 'ports are held on Linux alone';

t.test('starts of npm start', { skip, timeout: 300_000 }, async (whole) => {
  const dockerHost = await sharedEngine(whole);
  const envOf = (state: string): NodeJS.ProcessEnv => ({
    ...process.env,
    DOCKER_HOST: dockerHost,
    LONGSHORE_STATE: state,
    LONGSHORE_CACHE: cacheFolder(process.env),
  });
  const portsOf = (state: string): Ports => JSON.parse(readFileSync(join(state, 'ports.json'), 'utf8')) as Ports;
  const newState = (): string => join(temporaryFolder(whole), 'state');

  await whole.test('two at one moment that want the same ports', async (t) => {
    const states = [newState(), newState()];
    const first = 20_000 + Math.floor(Math.random() * 10_000);
    const wanted = Object.fromEntries(portNames.map((name, index) => [name, first + index]));
    for (const state of states) {
      mkdirSync(state, { mode: 0o700 });
      writeFileSync(join(state, 'ports.json'), JSON.stringify(wanted));
    }
    const starts = states.map((state) => launch(t, envOf(state)));
    // A gateway knows only the tokens of its own start.
    await Promise.all(starts.map((started) => started.says('host in the fleet')));
    const ports = states.flatMap((state) => Object.values(portsOf(state)));
    t.equal(new Set(ports).size, 2 * portNames.length);
    t.same(await Promise.all(starts.map((started) => started.interrupt())), [0, 0]);
    for (const [index, started] of starts.entries()) await isGone(t, states[index]!, started);
  });

  await whole.test('a program that takes the gateway’s port gets no token', async (t) => {
    const state = newState();
    const asked: string[] = [];
    const impostor = createServer(({ method, url, headers }, response) => {
      asked.push(`${method} ${url} ${headers.authorization ?? ''}`);
      response.end('{"status":"ready"}');
    });
    t.teardown(() => impostor.close());
    const started = launch(t, envOf(state));
    await until('ports are chosen', () => existsSync(join(state, 'ports.json')));
    const { api } = portsOf(state);
    await once(impostor.listen(api, '127.0.0.1'), 'listening');
    t.equal(await started.ended(), 1);
    t.match(started.output(), `cannot listen on 127.0.0.1:${api}: the address or port is in use`);
    t.same(asked, []);
    await isGone(t, state, started);
  });
});
