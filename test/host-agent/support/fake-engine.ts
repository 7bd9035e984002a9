/**
 * A container engine by its protocol (Docker Engine API v1.41), which can be made to hang, refuse
 * or stall where a real one cannot be asked to. It holds containers and images in memory; nothing
 * runs.
 */
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { randomBytes } from 'node:crypto';
import type { Test } from 'tap';

export interface FakeContainer {
  readonly id: string;
  readonly name: string;
  readonly labels: Record<string, string>;
  readonly image: string;
  status: 'created' | 'running' | 'exited';
  startedAt: string;
  finishedAt: string;
}

export interface FakeCall {
  readonly method: string;
  /** Without the version. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly container: FakeContainer | undefined;
}

/** Undefined: as usual. */
export type Intercept = (call: FakeCall, response: ServerResponse) => 'hang' | 'answered' | undefined;

export interface FakeEngine {
  readonly host: string;
  readonly containers: Map<string, FakeContainer>;
  intercept(handler: Intercept | undefined): void;
  /** Calls that were left without an answer and still wait. */
  hanging(): readonly FakeCall[];
  /** Calls that their caller gave up. */
  givenUp(): readonly FakeCall[];
  /** All calls, as they came. */
  calls(): readonly FakeCall[];
  /** Its process ends as soon as it has begun. */
  crash(container: FakeContainer): void;
}

const never = '0001-01-01T00:00:00Z';

export const json = (response: ServerResponse, status: number, body: unknown): 'answered' => {
  response.writeHead(status, { 'content-type': 'application/json' }).end(JSON.stringify(body));
  return 'answered';
};

/** `nowMs`: of the machine that the engine is on. */
export async function startFakeEngine(t: Test, nowMs: () => number = Date.now): Promise<FakeEngine> {
  const containers = new Map<string, FakeContainer>();
  const images = new Set<string>();
  const listeners = new Set<ServerResponse>();
  const hanging = new Set<FakeCall>();
  const givenUp: FakeCall[] = [];
  const calls: FakeCall[] = [];
  let intercept: Intercept | undefined;
  let network = false;

  const hang = (call: FakeCall, response: ServerResponse): void => {
    hanging.add(call);
    response.once('close', () => {
      hanging.delete(call);
      givenUp.push(call);
    });
  };

  const matches = (container: FakeContainer, query: URLSearchParams): boolean => {
    const { label = [] } = JSON.parse(query.get('filters') ?? '{}') as { label?: string[] };
    return label.every((each) => {
      const [name = '', value] = each.split('=');
      return container.labels[name] === value;
    });
  };

  const inspection = (container: FakeContainer) => ({
    Id: container.id,
    State: {
      Status: container.status,
      OOMKilled: false,
      ExitCode: 0,
      Error: '',
      StartedAt: container.startedAt,
      FinishedAt: container.finishedAt,
    },
    Config: { Labels: container.labels },
    NetworkSettings: { Ports: {} },
  });

  const create = (call: FakeCall, body: string, response: ServerResponse): void => {
    const name = call.query.get('name') ?? '';
    if ([...containers.values()].some((each) => each.name === name)) {
      json(response, 409, { message: `the name ${name} is in use` });
      return;
    }
    const { Labels: labels, Image: image } = JSON.parse(body) as { Labels: Record<string, string>; Image: string };
    const id = randomBytes(32).toString('hex');
    containers.set(id, { id, name, labels, image, status: 'created', startedAt: never, finishedAt: never });
    json(response, 201, { Id: id });
  };

  const change = (container: FakeContainer, action: string): void => {
    const now = new Date(nowMs()).toISOString();
    if (action === 'start') Object.assign(container, { status: 'running', startedAt: now });
    if (action === 'stop') Object.assign(container, { status: 'exited', finishedAt: now });
    if (action === 'remove') containers.delete(container.id);
  };

  const tell = ({ id, labels }: FakeContainer, action: string): void => {
    const event = { Type: 'container', Action: action, Actor: { ID: id, Attributes: labels } };
    for (const listener of listeners) listener.write(`${JSON.stringify(event)}\n`);
  };

  const onContainer = (call: FakeCall, container: FakeContainer, response: ServerResponse): void => {
    const action = call.method === 'DELETE' ? 'remove' : (call.path.split('/')[3] ?? '');
    switch (action) {
      case 'json':
        json(response, 200, inspection(container));
        return;
      case 'logs':
        response.writeHead(200);
        if (container.status === 'running' && call.query.get('follow') === '1') response.flushHeaders();
        else response.end();
        return;
      default:
        change(container, action);
        response.writeHead(204).end();
    }
  };

  const answer = (call: FakeCall, body: string, response: ServerResponse): void => {
    const { method, path, query, container } = call;
    if (path === '/version') json(response, 200, { Version: 'fake', ApiVersion: '1.41', MinAPIVersion: '1.12' });
    else if (path === '/info') json(response, 200, { NCPU: 64, MemTotal: 2 ** 38 });
    else if (path === '/events') {
      response.writeHead(200).flushHeaders();
      listeners.add(response);
      response.once('close', () => listeners.delete(response));
    } else if (path === '/networks') json(response, 200, network ? [{ Id: 'n', Name: 'fake', Created: never }] : []);
    else if (path === '/networks/create') {
      network = true;
      json(response, 201, { Id: 'n' });
    } else if (path === '/containers/json') {
      const found = [...containers.values()].filter((each) => matches(each, query));
      const summary = ({ id, status, labels }: FakeContainer) => ({
        Id: id,
        State: status,
        Status: status,
        Labels: labels,
      });
      json(response, 200, found.map(summary));
    } else if (path === '/containers/create') create(call, body, response);
    else if (path === '/images/create') {
      images.add(query.get('fromImage') ?? '');
      response.writeHead(200).end('{"status":"done"}\n');
    } else if (path.startsWith('/images/')) {
      const reference = path.slice('/images/'.length, -'/json'.length).replace(/^sha256:/, '');
      if (images.has(reference)) json(response, 200, { Id: `sha256:${reference}`, Config: null });
      else json(response, 404, { message: `no such image: ${reference}` });
    } else if (container !== undefined) onContainer(call, container, response);
    else json(response, 404, { message: `${method} ${path}: no such container` });
  };

  const handle = (request: IncomingMessage, response: ServerResponse, body: string): void => {
    const { pathname, searchParams: query } = new URL(request.url ?? '/', 'http://engine');
    const path = pathname.replace(/^\/v\d+\.\d+(?=\/)/, '');
    const container = containers.get(path.split('/')[2] ?? '');
    const call: FakeCall = { method: request.method ?? 'GET', path, query, container };
    calls.push(call);
    const verdict = intercept?.(call, response);
    if (verdict === 'hang') hang(call, response);
    else if (verdict === undefined) answer(call, body, response);
  };

  const server = createServer((request, response) => {
    let body = '';
    request.on('data', (chunk: Buffer) => (body += chunk.toString('latin1')));
    request.on('end', () => handle(request, response, body));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(
    () =>
      new Promise((resolve) => {
        server.close(resolve);
        server.closeAllConnections();
      }),
  );
  return {
    host: `tcp://127.0.0.1:${(server.address() as AddressInfo).port}`,
    containers,
    intercept: (handler) => (intercept = handler),
    hanging: () => [...hanging],
    givenUp: () => givenUp,
    calls: () => calls,
    crash: (container) => {
      const now = new Date(nowMs()).toISOString();
      Object.assign(container, { status: 'exited', startedAt: now, finishedAt: now });
      tell(container, 'die');
    },
  };
}
