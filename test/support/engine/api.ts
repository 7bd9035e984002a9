/** The part of the Docker Engine API (v1.41) that an agent calls, applied to the engine model. */
import { refusal, type Answer, type EngineModel, type Labels, type SimulatedContainer } from './model.ts';

export interface EngineCall {
  readonly method: string;
  /** The path without the version prefix. */
  readonly path: string;
  readonly query: URLSearchParams;
  readonly body: Uint8Array;
  /** The container that the path names. */
  readonly container: SimulatedContainer | undefined;
}

/** A reply that streams after its head. */
export type Streamed =
  | { readonly kind: 'events'; readonly labels: Labels; readonly types: readonly string[] }
  | {
      readonly kind: 'logs';
      readonly container: SimulatedContainer;
      /** Time in the form of the API: seconds and their fraction, inclusive. */
      readonly since: string;
      readonly isFollowing: boolean;
    }
  | { readonly kind: 'pull'; readonly reference: string };

export type Reply = { readonly kind: 'whole'; readonly answer: Answer } | Streamed;

const version = { Version: '20.10.24', ApiVersion: '1.41', MinAPIVersion: '1.12' };
const info = { NCPU: 64, MemTotal: 2 ** 40, Architecture: 'x86_64' };

/** @param url path and query, as the client sent them */
export function parseCall(model: EngineModel, method: string, url: string, body: Uint8Array): EngineCall {
  const [given = '', search = ''] = url.split('?', 2);
  const path = given.replace(/^\/v\d+\.\d+(?=\/)/, '');
  const [, area, id = ''] = path.split('/');
  const container = area === 'containers' ? model.find(decodeURIComponent(id)) : undefined;
  return { method, path, query: new URLSearchParams(search), body, container };
}

export function labelsAsked(query: URLSearchParams): Labels {
  const { label = [] } = JSON.parse(query.get('filters') ?? '{}') as { label?: string[] };
  return Object.fromEntries(label.map((each) => [each.slice(0, each.indexOf('=')), each.slice(each.indexOf('=') + 1)]));
}

/** Event types that a query asks for. */
function typesAsked(query: URLSearchParams): string[] {
  const { type = [] } = JSON.parse(query.get('filters') ?? '{}') as { type?: string[] };
  return type;
}

const jsonOf = <T>({ body }: EngineCall): T => JSON.parse(Buffer.from(body).toString()) as T;
const ok = (body: unknown): Answer => ({ status: 200, body });

export function replyTo(model: EngineModel, call: EngineCall): Reply {
  const { method, path, query } = call;
  const [, area = '', first = ''] = path.split('/');
  if (area === 'events') return { kind: 'events', labels: labelsAsked(query), types: typesAsked(query) };
  const imported = query.get('repo');
  if (`${method} ${path}` === 'POST /images/create' && imported !== null) {
    model.pull(`${imported}:${query.get('tag')}`);
    return { kind: 'whole', answer: ok({}) };
  }
  if (`${method} ${path}` === 'POST /images/create') return { kind: 'pull', reference: query.get('fromImage') ?? '' };
  if (area === 'containers' && first !== 'json' && first !== 'create') return ofContainer(model, call);
  return { kind: 'whole', answer: ofEngine(model, call) };
}

function ofEngine(model: EngineModel, call: EngineCall): Answer {
  const { method, path, query } = call;
  const [, area = '', first = ''] = path.split('/');
  switch (`${method} ${area}`) {
    case 'GET version':
      return ok(version);
    case 'GET info':
      return ok(info);
    case 'GET networks':
      return model.networks(labelsAsked(query));
    case 'POST networks':
      return model.createNetwork(jsonOf(call));
    case 'DELETE networks':
      return model.removeNetwork(first);
    // No image declares one.
    case 'GET volumes':
      return ok({ Volumes: null });
    case 'GET images': {
      const id = model.imageId(decodeURIComponent(path.slice('/images/'.length, -'/json'.length)));
      return id === undefined ? refusal(404, `No such image: ${path}`) : ok({ Id: id, Config: null });
    }
    // Every registry gives everything.
    case 'GET distribution':
      return ok({});
    case 'GET containers':
      return model.list(labelsAsked(query));
    case 'POST containers':
      return model.create(query.get('name') ?? '', jsonOf(call));
    default:
      return refusal(404, `page not found: ${method} ${path}`);
  }
}

function ofContainer(model: EngineModel, call: EngineCall): Reply {
  const { method, path, query, container } = call;
  const [, , id = '', verb = ''] = path.split('/');
  if (container === undefined) return { kind: 'whole', answer: refusal(404, `No such container: ${id}`) };
  if (verb === 'logs')
    return { kind: 'logs', container, since: query.get('since') ?? '0', isFollowing: query.get('follow') === '1' };
  if (verb === 'update') return { kind: 'whole', answer: model.update(container, jsonOf(call)) };
  return { kind: 'whole', answer: act(model, `${method} ${verb}`, container) };
}

function act(model: EngineModel, action: string, container: SimulatedContainer): Answer {
  switch (action) {
    case 'GET json':
      return model.inspect(container);
    case 'POST start':
      return model.start(container);
    case 'POST stop':
      return model.stop(container);
    case 'POST kill':
      return model.kill(container);
    case 'DELETE ':
      return model.remove(container);
    case 'PUT archive':
      return { status: 200 };
    default:
      return refusal(404, `page not found: ${action}`);
  }
}
