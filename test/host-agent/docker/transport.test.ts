/** A fake engine that speaks HTTP and does what a real one does only on a bad day. */
import t, { type Test } from 'tap';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { createEngineClient, type EngineClient } from '../../../host-agent/docker/calls/client.ts';
import type { EngineEvent, ImageSummary } from '../../../host-agent/docker/answers.ts';
import { createEngine, type Engine } from '../../../host-agent/docker/engine.ts';
import { EngineError, isOutage } from '../../../host-agent/docker/errors.ts';
import { labels } from '../../../host-agent/docker/ownership.ts';
import { sleep } from '../../../lib/time/backoff.ts';
import { limits } from '../../../schemas/limits.ts';
import { until } from '../../support/until.ts';
import {
  createTransport,
  parseEngineAddress,
  type Call,
  type Transport,
} from '../../../host-agent/docker/transport.ts';

type Handler = (path: string, response: ServerResponse, request: IncomingMessage) => void;

const version = (api: string, min = '1.24') => JSON.stringify({ Version: '99.1', ApiVersion: api, MinAPIVersion: min });

async function fakeTransport(
  t: Test,
  handle: Handler,
  idleMs?: number,
  onConnections: (change: 1 | -1) => void = () => undefined,
): Promise<Transport> {
  // As the engine, it keeps a connection for ever.
  const server = createServer({ keepAliveTimeout: 0 }, (request, response) =>
    handle(request.url ?? '', response, request),
  );
  server.on('connection', (socket) => {
    onConnections(1);
    socket.once('close', () => onConnections(-1));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  const { port } = server.address() as AddressInfo;
  const transport = createTransport({ kind: 'tcp', host: '127.0.0.1', port }, () => undefined, idleMs);
  t.teardown(() => {
    transport.close();
    server.closeAllConnections();
    server.close();
  });
  return transport;
}

const fakeEngine = async (t: Test, handle: Handler): Promise<Engine> => createEngine(await fakeTransport(t, handle));

const faultOf = async (work: Promise<unknown>): Promise<EngineError> => {
  try {
    await work;
  } catch (error) {
    if (error instanceof EngineError) return error;
    throw error;
  }
  throw new Error('it did not fail');
};

for (const [name, api, min, spoken] of [
  ['an old engine → its own version', '1.41', '1.12', '1.41'],
  ['a newer engine than the agent knows → the newest the agent knows', '1.99', '1.44', '1.51'],
] as const) {
  t.test(name, async (t) => {
    const paths: string[] = [];
    const engine = await fakeEngine(t, (path, response) => {
      paths.push(path);
      response.end(path === '/version' ? version(api, min) : '[]');
    });
    t.same(await engine.list({ a: 'b' }), []);
    t.match(paths, ['/version', new RegExp(`^/v${spoken.replace('.', '\\.')}/containers/json`)]);
  });
}

for (const [name, api, min] of [
  ['an engine that is too old is refused', '1.40', '1.12'],
  ['an engine that is too new is refused', '1.99', '1.60'],
] as const) {
  t.test(name, async (t) => {
    const engine = await fakeEngine(t, (_, response) => response.end(version(api, min)));
    const error = await faultOf(engine.probe(5000));
    t.match(error, { fault: { kind: 'malformed' }, detail: /engine speaks API/ });
  });
}

t.test('an engine that says nothing → the call ends at its deadline', async (t) => {
  const engine = await fakeEngine(t, () => undefined);
  const error = await faultOf(engine.probe(100));
  t.match(error.fault, { kind: 'deadline', ms: 100 });
  t.equal(isOutage(error), true);
});

for (const [name, status, ask] of [
  ['an answer', 200, (client, call) => client.ask(call, [200])],
  ['the refusal of a stream', 404, (client, call) => client.open(call)],
  ['the refusal of a hijacked connection', 409, (client, call) => client.hijack(call)],
] as const satisfies readonly [string, number, (client: EngineClient, call: Call) => Promise<unknown>][]) {
  t.test(`an engine that hangs in the middle of ${name} → deadline`, { timeout: 30_000 }, async (t) => {
    const transport = await fakeTransport(t, (path, response) => {
      if (path === '/version') response.end(version('1.41'));
      else response.writeHead(status, { 'content-length': '1000' }).write('{"mess');
    });
    const error = await faultOf(
      ask(createEngineClient(transport), { name: 'x', method: 'GET', path: '/x', deadlineMs: 100 }),
    );
    t.match(error.fault, { kind: 'deadline', ms: 100 });
  });
}

t.test('an engine that breaks off in the middle of an answer is unreachable', async (t) => {
  const engine = await fakeEngine(t, (_, response, request) => {
    response.writeHead(200, { 'content-length': '1000' });
    response.write('{"Vers');
    setTimeout(() => request.socket.destroy(), 50);
  });
  t.match((await faultOf(engine.probe(5000))).fault, { kind: 'unreachable' });
});

t.test('answers that do not follow the API are malformed', async (t) => {
  const engine = await fakeEngine(t, (path, response) =>
    response.end(path === '/version' ? version('1.41') : '{"x":1}'),
  );
  t.match((await faultOf(engine.list({}))).fault, { kind: 'malformed' });
});

t.test('a list is read whatever its labels hold; only an oversized answer fails', async (t) => {
  const label = 'x'.repeat(1024 * 1024);
  const summary = (id: string, more: object) =>
    JSON.stringify({ Id: id, Command: label, Labels: { flood: label, ...more }, State: 'running', Status: 'Up' });
  const engine = await fakeEngine(t, (path, response) => {
    if (path === '/version') response.end(version('1.41'));
    else if (path.includes('/containers/json')) {
      response.write('[');
      for (let index = 0; index < 20; index += 1) response.write(`${summary(`c${index}`, {})},`);
      response.end(`${summary('last', { 'longshore.host': 'h1' })}]`);
    } else if (path.includes('/images/small/history')) response.end('[{"CreatedBy":"RUN true","Comment":""}]');
    else if (path.includes('/images/long/history')) response.end(`[{"CreatedBy":"${label}${label}"}]`);
    else if (/small|long/.test(path)) response.end('{"Id":"sha256:y","Config":{"User":"root"}}');
    else response.end(`{"Id":"sha256:x","Config":{"Labels":{"a":"${label}${label}"}}}`);
  });
  const listed = await engine.list({});
  t.equal(listed.length, 21);
  t.same(listed.at(-1), { Id: 'last', Labels: { 'longshore.host': 'h1' }, State: 'running', Status: 'Up' });
  t.match((await faultOf(engine.imageDetails('x', 'r/x:1'))).fault, { kind: 'oversized' });
  t.match(await engine.imageDetails('small', 'r/small:1'), { Id: 'sha256:y', Config: { User: 'root' } });
  t.match((await faultOf(engine.imageDetails('long', 'r/long:1'))).fault, { kind: 'oversized' }, 'its history');
  t.equal(await engine.imageId('x'), 'sha256:x');
});

t.test('however many names others gave an image, it is read, and so is the list of images', async (t) => {
  const digest = `sha256:${'a'.repeat(64)}`;
  const names = Array.from({ length: 20_000 }, (_, index) => `evil.example/${'n'.repeat(200)}/${index}`);
  const digests = names.map((name) => `${name}@${digest}`);
  const image = { Id: 'sha256:x', RepoTags: names, RepoDigests: [...digests, `r.example/web@${digest}`], Config: {} };
  const engine = await fakeEngine(t, (path, response) => {
    if (path === '/version') response.end(version('1.41'));
    else if (path.includes('/history')) response.end('[]');
    else if (path.endsWith('/images/json')) response.end(JSON.stringify([image, { Id: 'sha256:y', Size: 1 }]));
    else response.end(JSON.stringify(image));
  });
  const details = await engine.imageDetails('x', 'r.example/web:1');
  t.same(details, { Id: 'sha256:x', RepoDigests: [`r.example/web@${digest}`], Config: {} });
  t.same((await engine.imageDetails('x', 'elsewhere.example/web:1'))?.RepoDigests, []);
  const listed: ImageSummary[] = [];
  await engine.images((each) => listed.push(each));
  t.same(
    listed.map(({ Id }) => Id),
    ['sha256:x', 'sha256:y'],
  );
  t.ok(Number(listed[0]?.RepoTags?.length) < 5000, 'with some of its names');
});

t.test('events are read whatever the labels of an image are', async (t) => {
  const flood = Object.fromEntries(Object.values(labels).map((name) => [name, 'x'.repeat(1024 * 1024)]));
  const line = (Action: string, more: object) =>
    `${JSON.stringify({ Action, Actor: { ID: 'd1', Attributes: { ...flood, ...more } } })}\n`;
  const engine = await fakeEngine(t, (path, response) => {
    if (path === '/version') response.end(version('1.41'));
    else response.end(`${line('pull', {})}${line('die', { exitCode: '7', [labels.tenant]: 'acme' })}`);
  });
  const { signal } = new AbortController();
  const all = async (events: AsyncIterable<EngineEvent>): Promise<EngineEvent[]> => {
    const found: EngineEvent[] = [];
    for await (const event of events) found.push(event);
    return found;
  };
  t.same(await all(await engine.changes(signal)), [{ Action: 'pull' }, { Action: 'die' }]);
  const [, died] = await all(await engine.events({}, signal));
  t.match(died, { Action: 'die', Actor: { ID: 'd1', Attributes: { exitCode: '7', [labels.tenant]: 'acme' } } });
});

t.test('a refusal keeps the words of the engine or of a proxy', async (t) => {
  const engine = await fakeEngine(t, (path, response) => {
    if (path === '/version') response.end(version('1.41'));
    else if (path.includes('/json')) response.writeHead(500).end('{"message":"driver failed"}');
    else response.writeHead(502).end('<html>Bad Gateway</html>');
  });
  t.match(await faultOf(engine.inspect('x')), { detail: 'driver failed', fault: { kind: 'refused', status: 500 } });
  t.match(await faultOf(engine.start('x')), { detail: /Bad Gateway/, fault: { status: 502 } });
});

t.test('an error in the stream of a pull is an error, though its status is 200', async (t) => {
  const engine = await fakeEngine(t, (path, response) => {
    if (path === '/version') response.end(version('1.41'));
    else response.end('{"status":"Pulling"}\r\n{"errorDetail":{"message":"denied"},"error":"denied"}\r\n');
  });
  t.match(await faultOf(engine.pull('a/b:1', new AbortController().signal)), { detail: 'denied' });
});

t.test('a pull that the agent gives up ends at once', async (t) => {
  const engine = await fakeEngine(t, (path, response) => {
    if (path === '/version') response.end(version('1.41'));
    else response.write('{"status":"Pulling"}\r\n');
  });
  const controller = new AbortController();
  const pulling = faultOf(engine.pull('a/b:1', controller.signal));
  setTimeout(() => controller.abort(), 100);
  t.match((await pulling).fault, { kind: 'aborted' });
});

t.test('connections that no call uses are closed; one that waits for its answer is not', async (t) => {
  let open = 0;
  const waiting: ServerResponse[] = [];
  const transport = await fakeTransport(
    t,
    (_path, response) => void waiting.push(response),
    100,
    (change) => (open += change),
  );
  const call = () => transport.call({ name: 'ping', method: 'GET', path: '/_ping' });
  const calls = [call(), call(), call()];
  await until('all of them wait', () => waiting.length === 3);
  await sleep(500);
  t.equal(open, 3);
  for (const response of waiting) response.end('OK');
  t.same(
    (await Promise.all(calls)).map(({ status }) => status),
    [200, 200, 200],
  );
  await until('they are closed', () => open === 0);
});

t.test('DOCKER_HOST names a socket or an address', (t) => {
  t.same(parseEngineAddress('unix:///run/docker.sock'), { kind: 'unix', socketPath: '/run/docker.sock' });
  t.same(parseEngineAddress('tcp://[::1]:2375'), { kind: 'tcp', host: '::1', port: 2375 });
  t.equal(parseEngineAddress('ssh://host'), undefined);
  t.end();
});

t.test('slow steps, stops and pulls leave connections for lists and probes', (t) => {
  const hung =
    limits.concurrentSteps + limits.concurrentSlowSteps + limits.concurrentStops + limits.concurrentSlowStops;
  t.ok(hung + limits.concurrentPulls < limits.engineConnections);
  t.end();
});
