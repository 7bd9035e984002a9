/**
 * A neighbour on the network scrapes the programs' metrics, without a token and with guesses at
 * one. It learns that the program lives, and nothing else.
 */
import { spawn } from 'node:child_process';
import { once } from 'node:events';
import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { createInterface } from 'node:readline';
import t, { type Test } from 'tap';
import { programFile } from '../../../dev/stack/programs.ts';
import { metricsListenerOf } from '../../../lib/metrics.ts';
import { temporaryFolder } from '../../support/folder.ts';

t.setTimeout(120_000);

const [token, next] = ['a-token-of-32-characters-or-more0', 'the+next/token_of~operators-key=='];

/** The programs that listen before they have found a NATS server; in this test there is none. */
const programs = ['gateway', 'host-agent'] as const;

async function start(t: Test, program: (typeof programs)[number], env: NodeJS.ProcessEnv) {
  const folder = temporaryFolder(t);
  const child = spawn(process.execPath, [programFile(program)], {
    env: {
      NATS_URLS: 'nats://127.0.0.1:1',
      AUTH_ISSUER: 'https://issuer.test',
      AUTH_AUDIENCE: 'test',
      AUTH_JWKS_URL: 'http://127.0.0.1:1/jwks',
      HTTP_PORT: '0',
      STATE_DIR: folder,
      LONGSHORE_URL: 'http://127.0.0.1:1',
      LONGSHORE_JOIN_TOKEN: `lsj_h1_${'x'.repeat(43)}`,
      METRICS_PORT: '0',
      ...env,
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const exited = once(child, 'exit');
  t.teardown(async () => {
    child.kill('SIGKILL');
    await exited;
  });
  const events: string[] = [];
  for await (const line of createInterface({ input: child.stderr })) {
    const { event, url, message, error } = JSON.parse(line) as Record<string, string | undefined>;
    events.push(event ?? '');
    if (event === 'metrics_listening') return { url: String(url), events };
    if (event === 'configuration_invalid') throw new Error(JSON.stringify({ message, error }));
  }
  throw new Error(`${program} ended: ${events.join()}`);
}

const get = (url: string, authorization?: string): Promise<Response> =>
  fetch(url, {
    signal: AbortSignal.timeout(60_000),
    ...(authorization === undefined ? {} : { headers: { authorization } }),
  });

for (const program of programs) {
  t.test(program, async (t) => {
    const file = join(temporaryFolder(t), 'token');
    writeFileSync(file, `${token}\n${next}\n`);
    const { url, events } = await start(t, program, { METRICS_HOST: '0.0.0.0', METRICS_TOKEN_FILE: file });
    t.notOk(events.includes('metrics_unprotected'));
    const here = url.replace('0.0.0.0', '127.0.0.1');
    const guesses = [
      undefined,
      'Bearer',
      'Bearer ',
      `Bearer ${token.slice(0, -1)}`,
      `Bearer ${token}0`,
      `Bearer ${token},${next}`,
      `Basic ${token}`,
      token,
    ];
    for (const guess of guesses) {
      const answer = await get(here, guess);
      t.equal(answer.status, 401, String(guess));
      t.equal(answer.headers.get('www-authenticate'), 'Bearer');
      t.notMatch(await answer.text(), /longshore_/);
    }
    t.equal((await get(`${here}?token=${token}`)).status, 401, 'a token in a URL is refused, because URLs are logged');
    for (const right of [`Bearer ${token}`, `bearer ${next}`]) {
      const answer = await get(here, right);
      t.equal(answer.status, 200);
      t.match(await answer.text(), /longshore_build_info/);
    }
    t.equal((await get(here.replace('/metrics', '/healthz'))).status, 200, 'probes need no token');
  });
}

t.test('a listener beyond loopback without a token warns', async (t) => {
  t.ok((await start(t, 'host-agent', { METRICS_HOST: '0.0.0.0' })).events.includes('metrics_unprotected'));
  t.notOk((await start(t, 'host-agent', {})).events.includes('metrics_unprotected'), 'the default is loopback');
});

t.test('a token file without a token is refused at the start', (t) => {
  const file = join(temporaryFolder(t), 'token');
  for (const content of ['', 'short', 'two words of some length', `${token}\nshort`, `${token}\n`.repeat(9)]) {
    writeFileSync(file, content);
    const read = () => metricsListenerOf({ METRICS_HOST: '0.0.0.0', METRICS_PORT: 1, METRICS_TOKEN_FILE: file });
    t.throws(read, /METRICS_TOKEN_FILE/, JSON.stringify(content).slice(0, 40));
  }
  t.end();
});
