/**
 * From a method and a raw path to a route of the table. Pure; compiled once. Literal segments are
 * compared as they were sent, so an encoded segment never matches one. A parameter is decoded once.
 * A value that could be read as a path of its own (`%2f`, `..`), or that a terminal would obey
 * (`%1b`), names nothing: no name has one, and the audit never gets one. The route answers that it
 * is not found, so a page for people is a page there, too.
 */
import type { Access, Method, Route } from '../../schemas/routes.ts';
import { hasControls } from '../../schemas/visible.ts';

export interface Router<R extends Route> {
  match(method: string, path: string): Match<R>;
}

export type Match<R extends Route> =
  | {
      readonly kind: 'route';
      readonly route: R;
      /** `undefined` if one of them is no valid name: the path then names nothing. */
      readonly params: Readonly<Record<string, string>> | undefined;
    }
  /** The table has the path, but not with this method. */
  | { readonly kind: 'method'; readonly allow: string; readonly access: Access }
  | { readonly kind: 'options'; readonly allow: string }
  /** `guarded`: under a prefix where even "not found" needs credentials. */
  | { readonly kind: 'none'; readonly guarded: boolean };

interface Node<R extends Route> {
  readonly literals: Map<string, Node<R>>;
  parameter: { readonly name: string; readonly node: Node<R> } | undefined;
  readonly methods: Map<string, R>;
  allow: string;
}

const newNode = <R extends Route>(): Node<R> => ({
  literals: new Map(),
  parameter: undefined,
  methods: new Map(),
  allow: '',
});

/**
 * `/api/v2/compute`, `/api/forage`: the first segments identify an area of the API; either all of
 * an area is guarded, or none of it.
 */
const areaOf = (segments: readonly string[]): string => segments.slice(0, segments[1] === 'v2' ? 3 : 2).join('/');

/** The end of the last segment; one slash at the end of a path has no meaning. */
const endOf = (path: string): number => (path.length > 1 && path.endsWith('/') ? path.length - 1 : path.length);

const segmentsOf = (path: string): string[] => path.slice(1, endOf(path)).split('/');

/** Undefined if the segment can't be a single name. */
function decodeSegment(raw: string): string | undefined {
  if (raw === '') return undefined;
  let decoded = raw;
  if (raw.includes('%')) {
    try {
      decoded = decodeURIComponent(raw);
    } catch {
      return undefined;
    }
  }
  return decoded === '.' || decoded === '..' || decoded.includes('/') || hasControls(decoded) ? undefined : decoded;
}

const order: readonly Method[] = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE'];

const hasHead = ({ method, acts }: Route): boolean => method === 'GET' && acts !== true;

function allowOf(methods: ReadonlyMap<string, Route>): string {
  const names = order.flatMap((name) => {
    const route = methods.get(name);
    return route === undefined ? [] : hasHead(route) ? [name, 'HEAD'] : name;
  });
  return [...names, 'OPTIONS'].join(', ');
}

function compile<R extends Route>(routes: readonly R[]): Node<R> {
  const root = newNode<R>();
  for (const route of routes) {
    let node = root;
    for (const segment of segmentsOf(route.path)) {
      if (segment.startsWith(':')) {
        node.parameter ??= { name: segment.slice(1), node: newNode() };
        if (node.parameter.name !== segment.slice(1))
          throw new Error(`${route.path}: another route has another parameter name at this place`);
        node = node.parameter.node;
      } else {
        const next = node.literals.get(segment) ?? newNode<R>();
        node.literals.set(segment, next);
        node = next;
      }
    }
    node.methods.set(route.method, route);
    node.allow = allowOf(node.methods);
  }
  return root;
}

const noParams: Readonly<Record<string, string>> = {};

export function createRouter<R extends Route>(routes: readonly R[]): Router<R> {
  const root = compile(routes);
  const guardedAreas = new Set(
    routes.filter(({ access }) => access !== 'public').map(({ path }) => areaOf(segmentsOf(path))),
  );

  return {
    match(method, path) {
      if (!path.startsWith('/')) return { kind: 'none', guarded: false };
      const end = endOf(path);
      let node: Node<R> | undefined = root;
      let params: Readonly<Record<string, string>> | undefined = noParams;
      let from = 1;
      // Segment by segment, and no further than the table goes: a path may have thousands.
      while (node !== undefined && from <= end) {
        const slash = path.indexOf('/', from);
        const to = slash < 0 || slash > end ? end : slash;
        const segment = path.slice(from, to);
        from = to + 1;
        const { literals, parameter }: Node<R> = node;
        node = literals.get(segment);
        if (node !== undefined || parameter === undefined) continue;
        if (segment === '') break;
        const value = decodeSegment(segment);
        params = value === undefined || params === undefined ? undefined : { ...params, [parameter.name]: value };
        ({ node } = parameter);
      }
      if (node === undefined || node.methods.size === 0) {
        return { kind: 'none', guarded: method !== 'OPTIONS' && guardedAreas.has(areaOf(segmentsOf(path))) };
      }
      if (method === 'OPTIONS') return { kind: 'options', allow: node.allow };
      const route = node.methods.get(method === 'HEAD' ? 'GET' : method);
      if (route !== undefined && (method !== 'HEAD' || hasHead(route))) return { kind: 'route', route, params };
      const [any] = node.methods.values();
      return { kind: 'method', allow: node.allow, access: any?.access ?? 'public' };
    },
  };
}
