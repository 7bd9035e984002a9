/** Failures of parts of the stack, as a client sees them. */
import { readFileSync } from 'node:fs';
import t from 'tap';
import { promtoolFindings } from '../../support/prometheus/promtool.ts';
import { eventually } from '../support/eventually.ts';
import { startRig } from '../support/rig.ts';

const small = { cpu_limit: '0.1', mem_limit: '16m' };

t.test('failures as a client sees them', async (t) => {
  const rig = await startRig(t, { gateway: { REQUEST_DEADLINE: '3s' } });
  const acme = await rig.client('acme');
  const { body } = await acme.create({ name: 'steady', ...rig.image, ...small });
  t.equal((await acme.wait(body.data, 'running')).status, 200);

  t.test('without NATS a client gets 503 with Retry-After; the gateway recovers without a restart', async (t) => {
    await rig.nats.kill9();
    const away = await acme.list();
    t.equal(away.status, 503);
    t.same(away.body, { error: 'unavailable' });
    t.match(away.headers.get('retry-after'), /^\d+$/);
    await eventually(
      'not ready',
      async () => (await fetch(`${rig.baseUrl}/readyz`)).status,
      (status) => status === 503,
    );
    t.equal((await fetch(`${rig.baseUrl}/healthz`)).status, 200);
    t.equal((await fetch(`${rig.baseUrl}/api/v2/compute`)).status, 401, 'authentication needs no NATS');
    await rig.nats.restart();
    await eventually(
      'the gateway serves again',
      async () => acme.list(),
      ({ status }) => status === 200,
    );
    t.equal((await acme.create({ name: 'after-nats', ...small })).status, 201);
  });

  t.test('the containers of a silent host are unknown until the host reports again', async (t) => {
    await rig.agent.kill9();
    const silent = await eventually(
      'unknown',
      async () => acme.status(body.data),
      (reply) => reply.body.data.status === 'unknown',
    );
    t.match(silent.body.data, { observed_status: 'running', reason: 'host_silent' });
    t.equal((await rig.engine.only(body.data.id)).State.Running, true, 'the container keeps running');
    await rig.agent.start();
    await eventually(
      'running',
      async () => acme.status(body.data),
      (reply) => reply.body.data.status === 'running',
    );
  });

  t.test('the agent restarts a crashed container while the control plane is down', async (t) => {
    await rig.actors.kill9();
    const before = await rig.engine.only(body.data.id);
    await rig.engine.call('POST', `/containers/${before.Id}/kill`);
    await eventually(
      'started again',
      async () => rig.engine.only(body.data.id),
      ({ State }) => State.Running && State.StartedAt !== before.State.StartedAt,
    );
    await rig.actors.start();
    const status = await eventually(
      'reported',
      async () => acme.status(body.data),
      (reply) => reply.body.data?.restart_count > 0 && reply.body.data.status === 'running',
    );
    t.equal(status.body.data.restart_count, 1);
  });

  t.test('the log lines of a request carry its id, from gateway to agent', async (t) => {
    const requestId = 'follow-me-17';
    const stopped = await acme.call('POST', `/api/v2/compute/${body.data.id}/stop`, undefined, {
      'x-request-id': requestId,
    });
    t.equal(stopped.headers.get('x-request-id'), requestId);
    for (const program of [rig.gateway, rig.agent]) {
      await eventually(
        `${program.server().name} logs it`,
        async () => readFileSync(program.server().logFile, 'utf8'),
        (text) => text.includes(requestId),
      );
    }
    t.ok(true);
  });

  t.test('metrics of all three programs pass promtool', async (t) => {
    for (const [program, url] of Object.entries(rig.metricsUrls)) {
      const text = await (await fetch(url, { signal: AbortSignal.timeout(5000) })).text();
      t.match(text, /^longshore_build_info\{/m, program);
      t.equal(await promtoolFindings(text), '', program);
    }
  });

  t.test('a gateway that gets SIGTERM answers every accepted request', async (t) => {
    let isAsking = true;
    const outcomes: string[] = [];
    const reset: string[] = [];
    const askers = Array.from({ length: 8 }, async (_, asker) => {
      for (let round = 0; isAsking; round++) {
        const requestId = `last-moment-${asker}-${round}`;
        try {
          const { status } = await acme.call('GET', '/api/v2/compute', undefined, { 'x-request-id': requestId });
          outcomes.push(String(status));
        } catch (error) {
          // The listening socket is closed: the gateway never accepted the connection.
          const { code } = (error as { cause?: { code?: string } }).cause ?? {};
          if (code === 'ECONNREFUSED') return;
          // The kernel resets connections not yet accepted when the listening socket closes; the
          // client has two codes for that.
          if (code === 'ECONNRESET' || code === 'UND_ERR_SOCKET') reset.push(requestId);
          else outcomes.push(String(code));
        }
      }
    });
    await eventually(
      'under load',
      async () => outcomes.length,
      (count) => count > 50,
    );
    const { logFile } = rig.gateway.server();
    await rig.gateway.stop();
    isAsking = false;
    await Promise.all(askers);
    t.same([...new Set(outcomes)], ['200']);
    const log = readFileSync(logFile, 'utf8');
    t.ok(log.includes('last-moment-0-0'), 'the log holds accepted requests');
    t.same(
      reset.filter((requestId) => log.includes(requestId)),
      [],
    );
  });
});
