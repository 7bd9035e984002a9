/**
 * `npm start` in a fresh copy under each supported line of Node: it installs, compiles, and runs
 * the demo container. The fast HTTP engine serves wherever its binary loads.
 */
import { cpSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import t from 'tap';
import { nodeFolder, nodeVersions, type NodeLine } from '../../../dev/fetch/node.ts';
import { cacheFolder, repositoryRoot, shortTemporaryRoot } from '../../../dev/paths.ts';
import { sharedEngine } from '../../support/servers.ts';
import { inCi } from '../../support/tools.ts';
import { isGone, launch } from './npm-start.ts';

/** The folders of the repository that `npm start` needs. */
const sources = ['schemas', 'lib', 'gateway', 'actors', 'host-agent', 'cli', 'ops', 'dev'];
const files = ['package.json', 'package-lock.json', '.npmrc'];
const installDeadlineMs = 300_000;
/** The minor version of glibc 2 that the binaries for Node 24 and 26 need. */
const glibcOfNewer = 38;
const { header } = process.report.getReport() as { header: { glibcVersionRuntime?: string } };
const glibcHere = Number(header.glibcVersionRuntime?.split('.')[1] ?? 0);

t.test('npm start works on each supported line of Node', { timeout: 900_000 }, async (t) => {
  const copy = mkdtempSync(join(shortTemporaryRoot(), 'longshore-node-'));
  t.teardown(() => rmSync(copy, { recursive: true, force: true, maxRetries: 5 }));
  for (const name of [...sources, ...files]) cpSync(join(repositoryRoot, name), join(copy, name), { recursive: true });
  const dockerHost = await sharedEngine(t);
  const cache = cacheFolder(process.env);

  for (const line of [20, 22, 24, 26] satisfies NodeLine[]) {
    const folder = await nodeFolder(line, cache).catch((error: unknown) => {
      if (inCi) throw error;
      return undefined;
    });
    const skip = folder === undefined ? `npm has no Node ${nodeVersions[line]} for this machine` : false;
    await t.test(`Node ${nodeVersions[line]}`, { skip }, async (t) => {
      const state = join(copy, `state-${line}`);
      rmSync(join(copy, 'node_modules'), { recursive: true, force: true });
      const env = {
        ...process.env,
        PATH: [folder, process.env['PATH']].join(delimiter),
        DOCKER_HOST: dockerHost,
        LONGSHORE_STATE: state,
        LONGSHORE_CACHE: cache,
      };
      const started = launch(t, env, {
        command: join(folder ?? '', 'node'),
        args: ['dev/bootstrap.mjs', 'start'],
        cwd: copy,
      });
      await started.says('Up after', installDeadlineMs);
      t.match(started.output(), /^ {2}container {2}demo \(.*\) is running/m);
      const log = readFileSync(join(state, 'logs/gateway.log'), 'utf8');
      const fallbacks = log.split('\n').filter((one) => one.includes('"http_engine_fallback"'));
      if (line >= 24 && glibcHere < glibcOfNewer) {
        t.equal(fallbacks.length, 1, 'the log says once that node:http serves');
        t.match(fallbacks[0], /does not load on this system; node:http serves.*GLIBC_/);
      } else {
        t.same(fallbacks, [], 'uWebSockets.js serves');
      }
      t.equal(await started.interrupt(), 0);
      await isGone(t, state, started);
    });
  }
});
