/**
 * One request through all three programs on real parts: its id in the log lines of each, and its
 * spans at a receiver of OTLP.
 */
import { readFileSync } from 'node:fs';
import t, { type Test } from 'tap';
import { startOtlpReceiver, type ReceivedSpan } from '../../support/otlp.ts';
import type { Moment } from '../../../cli/history/way.ts';
import { commandLine } from '../support/command-line.ts';
import { eventually } from '../support/eventually.ts';
import type { Running } from '../support/programs.ts';
import { startRig } from '../support/rig.ts';

const traceId = '4bf92f3577b34da6a3ce929d0e0e4736';
const clientsSpan = '00f067aa0ba902b7';

interface Line {
  readonly event: string;
  readonly requestId?: string;
  readonly traceId?: string;
  readonly container?: string;
  readonly step?: string;
}

const linesOf = (program: Running): Line[] =>
  readFileSync(program.server().logFile, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('{'))
    .map((line) => JSON.parse(line) as Line);

/** The events of a program's lines about a request. */
const eventsOf = (program: Running, requestId: string): string[] =>
  linesOf(program).flatMap((line) => (line.requestId === requestId ? [line.event] : []));

t.test('a request is followed through all three programs', async (t) => {
  const receiver = await startOtlpReceiver(t);
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: receiver.url };
  const rig = await startRig(t, {
    gateway: { ...env, OTEL_SERVICE_NAME: 'api', OTEL_TRACES_SAMPLER: 'parentbased_always_off' },
    actors: { ...env, LOG_LEVEL: 'debug' },
    agent: env,
  });
  const acme = await rig.client('acme');
  const create = (name: string, flags: string) =>
    acme.create(
      { name, ...rig.image, cpu_limit: '0.1', mem_limit: '32m' },
      { 'x-request-id': name, traceparent: `00-${traceId}-${clientsSpan}-${flags}` },
    );
  const logged = async (t: Test, requestId: string): Promise<void> => {
    const expected = [
      [rig.gateway, ['request']],
      [rig.actors, ['turn_taken']],
      [rig.agent, ['doorbell_received', 'desired_changed', 'step_taken']],
    ] as const;
    for (const [program, events] of expected) {
      await eventually(
        `${program.server().name} logs ${requestId}`,
        async () => eventsOf(program, requestId),
        (found) => events.every((event) => found.includes(event)),
      );
    }
    t.pass('in the lines of all three');
  };

  t.test('its spans are in the trace of the client, each below its cause', async (t) => {
    const { body } = await create('traced', '01');
    t.equal((await acme.wait(body.data, 'running')).status, 200);
    const named = (name: string): ReceivedSpan[] => receiver.spans.filter((span) => span.name === name);
    await eventually(
      'the host has exported',
      async () => named('reconcile').length,
      (count) => count === 1,
    );
    await eventually(
      'the gateway and the owner have exported',
      async () => named('POST /api/v2/compute').length + named('commit').length,
      (count) => count === 2,
    );
    const tree = [
      ['POST /api/v2/compute', 'api', undefined],
      ['ask container.create', 'api', 'POST /api/v2/compute'],
      ['answer container.create', 'longshore-actors', 'ask container.create'],
      ['commit', 'longshore-actors', 'answer container.create'],
      ['reconcile', 'longshore-host-agent', 'answer container.create'],
      ['sync', 'longshore-host-agent', 'reconcile'],
      ['pull', 'longshore-host-agent', 'reconcile'],
      ['create', 'longshore-host-agent', 'reconcile'],
      ['start', 'longshore-host-agent', 'reconcile'],
    ] as const;
    t.ok(
      receiver.spans.every((span) => span.traceId === traceId),
      'nothing else is traced: the client’s other requests have no sampled parent',
    );
    for (const [name, service, parent] of tree) {
      const [span, ...more] = named(name);
      t.same(more, [], `one ${name}`);
      const parentSpanId = parent === undefined ? clientsSpan : named(parent)[0]?.spanId;
      t.match(span, { traceId, service, parentSpanId }, `${name} is below ${parent ?? 'the client'}`);
      t.ok((span?.endTimeUnixNano ?? '') >= (span?.startTimeUnixNano ?? ''), `${name} ends after it begins`);
    }
    t.match(named('POST /api/v2/compute')[0]?.values, {
      'http.response.status_code': 201,
      'http.route': '/api/v2/compute',
      'longshore.tenant': 'acme',
      'longshore.request_id': 'traced',
    });
    t.match(named('start')[0]?.values, { 'longshore.container': body.data.id, 'longshore.result': 'done' });
    await logged(t, 'traced');
    for (const program of [rig.gateway, rig.actors, rig.agent])
      t.ok(
        linesOf(program).some((line) => line.requestId === 'traced' && line.traceId === traceId),
        `${program.server().name} names the trace`,
      );
  });

  t.test('`longshore trace` shows its way', async (t) => {
    const { longshore } = commandLine(t);
    const env = { LONGSHORE_SERVER: rig.baseUrl, LONGSHORE_TOKEN: acme.token };
    const way = async (...args: string[]): Promise<Moment[]> => {
      const { code, out, err } = await longshore(['trace', ...args, '--json'], { env });
      t.equal(code, 0, err);
      return JSON.parse(out) as Moment[];
    };
    const events = (await way('traced')).map(({ what, details }) => `${what} ${String(details['status'])}`);
    t.match(events.slice(0, 2), ['created pending', 'placed pending']);
    t.equal(events.at(-1), 'status running');

    const files = [rig.gateway, rig.actors, rig.agent].map((program) => program.server().logFile);
    const lines = await way('traced', '--logs', ...files);
    const steps = lines.map(({ from, what, details }) => `${from.split(' ')[0]} ${String(details['step'] ?? what)}`);
    const expected = [
      'gateway request',
      'actors turn_taken',
      'host-agent desired_changed',
      'host-agent pull',
      'host-agent start',
    ];
    t.same(
      expected.filter((step) => !steps.includes(step)),
      [],
    );
    t.ok(steps.indexOf('host-agent pull') < steps.indexOf('host-agent start'));

    const read = await longshore(['trace', 'traced', '--logs', '-'], { input: readFileSync(files[2] ?? '') });
    t.match(read.out, /^TIME +AFTER +FROM +WHAT\n[^]* desired_changed [^]*\+\d+ ms +host-agent \S+ +step_taken /);
    t.match(await longshore(['trace', 'unknown'], { env }), { code: 1, err: /names the request "unknown"/ });
    t.match(await longshore(['trace', 'traced', '--logs', '/no/file']), { code: 1, err: /\/no\/file can't be read/ });
  });

  t.test('without the flag of its client it is logged and not traced', async (t) => {
    const before = receiver.spans.length;
    const { body } = await create('untraced', '00');
    t.equal((await acme.wait(body.data, 'running')).status, 200);
    await logged(t, 'untraced');
    t.equal(receiver.spans.length, before);
    t.notOk(linesOf(rig.agent).some((line) => line.requestId === 'untraced' && line.traceId !== undefined));
  });

  t.test('later events of the container belong to no request', async (t) => {
    const { body } = await create('crashes', '01');
    await acme.wait(body.data, 'running');
    const isSettled = (): boolean =>
      receiver.spans.some((span) => span.name === 'reconcile' && span.values['longshore.container'] === body.data.id);
    await eventually('settled', async () => isSettled(), Boolean);
    // A program writes its lines in batches: a span can be here before the line of its step.
    const started = (times: number) =>
      eventually(
        `the agent logs ${times} starts`,
        async () =>
          linesOf(rig.agent).filter((line) => line.container === body.data.id && line.step === 'start').length,
        (count) => count === times,
      );
    await started(1);
    const before = eventsOf(rig.agent, 'crashes');
    const { Id } = await rig.engine.only(body.data.id);
    await rig.engine.call('POST', `/containers/${Id}/kill`);
    await started(2);
    t.same(eventsOf(rig.agent, 'crashes'), before);
  });

  t.test('a receiver that does not answer delays no request', async (t) => {
    receiver.answer('silent');
    const { body } = await create('unheard', '01');
    t.equal((await acme.wait(body.data, 'running')).status, 200);
    const removed = await acme.call('DELETE', `/api/v2/compute/${body.data.id}`, undefined, {
      traceparent: `00-${traceId}-${clientsSpan}-01`,
    });
    t.equal(removed.status, 202);
    await eventually(
      'gone',
      async () => (await acme.get(body.data)).status,
      (status) => status === 404,
    );
  });
});
