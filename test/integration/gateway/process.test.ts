/**
 * The gateway as a process: what it logs at start, which configurations it refuses, its metrics,
 * and how it stops under load.
 */
import { spawn, type ChildProcess } from 'node:child_process';
import { createHash } from 'node:crypto';
import { once } from 'node:events';
import { Agent, request } from 'node:http';
import { createInterface } from 'node:readline';
import t, { type Test } from 'tap';
import { programFile } from '../../../dev/stack/programs.ts';
import { markVariable } from '../../../dev/process/ledger.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import { promtoolFindings } from '../../support/prometheus/promtool.ts';
import { usualEngines, okData, memoryOwner, serveOwner } from '../../gateway/support.ts';
import { environmentOf, startGround, untilReady, type Environment } from './support.ts';
import { until } from '../../support/until.ts';

/**
 * Within this time the balancer must notice, and the gateway must accept its last connection: when
 * the listening socket is closed, the kernel resets connections that are not accepted yet. That
 * takes milliseconds, but seconds on an overloaded machine.
 */
const delayMs = 10_000;
const main = programFile('gateway');
const ground = await startGround(t);
const owner = memoryOwner();
serveOwner(ground.nc, async (ask) => {
  // Long enough for some requests always to be under way.
  if (ask.type === 'container.list') {
    await sleep(30);
    return okData([]);
  }
  return owner(ask);
});

interface LogLine {
  readonly level: string;
  readonly event: string;
  readonly [field: string]: unknown;
}

interface Running {
  readonly child: ChildProcess;
  readonly lines: LogLine[];
  exited: number | null | undefined;
}

function start(t: Test, env: Environment): Running {
  const child = spawn(process.execPath, [main], {
    env: { PATH: process.env['PATH'], [markVariable]: process.env[markVariable], ...env },
    stdio: ['ignore', 'inherit', 'pipe'],
  });
  const running: Running = { child, lines: [], exited: undefined };
  createInterface({ input: child.stderr ?? process.stdin }).on('line', (line) =>
    running.lines.push(JSON.parse(line) as LogLine),
  );
  child.once('exit', (code) => {
    running.exited = code;
  });
  t.teardown(async () => {
    if (running.exited !== undefined) return;
    child.kill('SIGKILL');
    await once(child, 'exit');
  });
  return running;
}

async function urlOf(running: Running, event = 'listening'): Promise<string> {
  const { lines } = running;
  await until(event, () => running.exited !== undefined || lines.some((line) => line.event === event));
  if (running.exited !== undefined) throw new Error(`it ended: ${JSON.stringify(lines)}`);
  return String(lines.find((line) => line.event === event)?.['url']);
}

// The engines run in parallel: most of the time is spent in the delay.
t.jobs = usualEngines.length;
for (const engine of usualEngines) {
  t.test(`SIGTERM under load fails no accepted request, on ${engine}`, { buffered: true }, async (t) => {
    const running = start(t, environmentOf(ground, { HTTP_ENGINE: engine, SHUTDOWN_DELAY: `${delayMs}ms` }));
    const url = await urlOf(running);
    t.match(
      running.lines.find(({ event }) => event === 'listening'),
      { engine },
    );
    await untilReady(url);
    const authorization = `Bearer ${await ground.issuer.mint()}`;
    const agent = new Agent({ keepAlive: true, maxSockets: 32 });
    t.teardown(() => agent.destroy());

    let balancing = true;
    const tally = { answered: 0, endings: 0, failures: [] as string[] };
    const once200 = (): Promise<void> =>
      new Promise((resolve) => {
        const asked = request(`${url}/api/v2/compute`, { agent, headers: { authorization } }, (response) => {
          if (response.headers.connection === 'close') tally.endings++;
          response.resume();
          response.once('end', () => {
            if (response.statusCode === 200) tally.answered++;
            else tally.failures.push(`status ${response.statusCode}`);
            resolve();
          });
        });
        asked.once('error', (error) => {
          tally.failures.push(error.message);
          resolve();
        });
        asked.end();
      });
    const client = async (): Promise<void> => {
      while (balancing) await once200();
    };
    // A load balancer: it stops sending when the gateway says that it is not ready.
    const balancer = async (): Promise<void> => {
      for (;;) {
        const ready = await fetch(`${url}/readyz`).catch(() => undefined);
        await ready?.text();
        if (ready?.status !== 200) break;
        await sleep(20);
      }
      balancing = false;
    };
    const load = Promise.all([balancer(), ...Array.from({ length: 32 }, client)]);
    const stream = await fetch(`${url}/api/v2/compute/events?follow=true`, { headers: { authorization } });
    await until('load', () => tally.answered > 100);
    const answeredBefore = tally.answered;
    running.child.kill('SIGTERM');
    await load;
    const streamed = await stream.text();
    await until('exit', () => running.exited !== undefined);
    t.same(tally.failures, []);
    t.ok(answeredBefore > 0 && tally.answered > answeredBefore, `${tally.answered} answered`);
    t.ok(tally.endings > 0, 'some replies ended their connection');
    t.match(streamed, /event: end\ndata: \{"reason":"stopping"\}\n\n$/);
    t.equal(running.exited, 0);
    t.ok(running.lines.some(({ event }) => event === 'stopped'));
    await t.rejects(fetch(`${url}/healthz`));
  });
}

t.test('a log line for every request, without query strings and tokens', async (t) => {
  const running = start(t, environmentOf(ground));
  const url = await urlOf(running);
  await untilReady(url);
  const token = await ground.issuer.mint({ sub: 'alice', jti: 'named' });
  const response = await fetch(`${url}/api/v2/compute/quota?region=hush`, {
    headers: { authorization: `Bearer ${token}`, 'x-request-id': 'my-id' },
  });
  await response.text();
  await until('the line', () => running.lines.some(({ requestId }) => requestId === 'my-id'));
  t.match(
    running.lines.find(({ requestId }) => requestId === 'my-id'),
    {
      level: 'info',
      event: 'request',
      method: 'GET',
      route: 'tenant.quota',
      status: 200,
      tenant: 'acme',
      subject: 'alice',
      token: 'named',
      address: '127.0.0.1',
      ms: Number,
    },
  );
  const unnamed = await ground.issuer.mint({ sub: 'alice', jti: undefined });
  for (const bearer of [unnamed, 'x.y.z']) {
    const headers = { authorization: `Bearer ${bearer}`, 'x-request-id': bearer === unnamed ? 'unnamed' : 'stranger' };
    await (await fetch(`${url}/api/v2/compute/quota`, { headers })).text();
  }
  const lineOf = (id: string) => running.lines.find(({ requestId }) => requestId === id);
  await until('the lines', () => lineOf('unnamed') !== undefined && lineOf('stranger') !== undefined);
  const hash = createHash('sha256').update(unnamed).digest('base64').slice(0, 12);
  t.match(lineOf('unnamed'), { subject: 'alice', token: `${ground.issuer.keys.EdDSA.kid} ${hash}` });
  t.match(lineOf('stranger'), { status: 401, address: '127.0.0.1', subject: undefined, token: undefined });
  const all = JSON.stringify(running.lines);
  t.notMatch(all, /hush/);
  for (const shown of [token, unnamed]) t.notOk(all.includes(shown));
});

t.test('metrics pass promtool, with the names that the docs list', async (t) => {
  const running = start(t, environmentOf(ground));
  const [url, metricsUrl] = [await urlOf(running), await urlOf(running, 'metrics_listening')];
  await untilReady(url);
  const headers = { authorization: `Bearer ${await ground.issuer.mint()}` };
  for (const path of ['/api/v2/compute', '/api/v2/compute/quota', '/nope'])
    await (await fetch(`${url}${path}`, { headers })).text();
  await (await fetch(`${url}/api/v2/compute`)).text();
  const text = await (await fetch(metricsUrl)).text();
  t.equal(await promtoolFindings(text), '');
  for (const sample of [
    /longshore_gateway_requests_total\{route="container.list",status="200"\} 1/,
    /longshore_gateway_requests_total\{route="container.list",status="401"\} 1/,
    /longshore_gateway_requests_total\{route="none",status="404"\} 1/,
    /longshore_gateway_request_duration_seconds_count\{route="tenant.quota"\} 1/,
    /longshore_gateway_batch_items_count\{lane="read"\} \d/,
    /longshore_gateway_lane_queue_length\{lane="write"\} 0/,
    /longshore_gateway_token_cache_lookups_total\{result="hit"\} [1-9]/,
    /longshore_gateway_token_cache_entries 1/,
    /longshore_gateway_auth_failures_total\{reason="none"\} 1/,
    /longshore_gateway_ready 1/,
    /longshore_build_info\{program="gateway"/,
  ]) {
    t.match(text, sample);
  }
  t.notMatch(text, /acme/);
});

t.test('it listens without NATS, logs that it waits, and is ready once NATS is there', async (t) => {
  const running = start(t, environmentOf(ground, { NATS_URLS: 'nats://127.0.0.1:1' }));
  const url = await urlOf(running);
  t.equal((await fetch(`${url}/healthz`)).status, 200);
  t.equal((await fetch(`${url}/readyz`)).status, 503);
  const headers = { authorization: `Bearer ${await ground.issuer.mint()}` };
  const response = await fetch(`${url}/api/v2/compute`, { headers });
  t.equal(response.status, 503);
  t.ok(response.headers.get('retry-after'));
  t.equal((await fetch(`${url}/api/v2/compute`)).status, 401);
  running.child.kill('SIGTERM');
  await until('exit', () => running.exited !== undefined);
  t.equal(running.exited, 0);
});

t.test('a wrong configuration is refused with all of its faults', async (t) => {
  const running = start(t, { HTTP_PORT: 'x', HTTP_ENGINE: 'apache', AUTH_ISSUER: 'i', AUTH_AUDIENCE: 'a' });
  await until('exit', () => running.exited !== undefined);
  t.equal(running.exited, 1);
  const faults = running.lines.filter(({ event }) => event === 'configuration_invalid').map(({ fault }) => fault);
  t.same(faults, ['HTTP_PORT must be integer 0–65535', 'HTTP_ENGINE must be uws or node']);
});
