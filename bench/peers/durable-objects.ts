/**
 * The same API on workerd: a Durable Object for each tenant, with SQLite as its storage. The
 * runtime's output gate delays each answer until workerd has written the request's changes to disk.
 */
import { DurableObject, type Sql } from 'cloudflare:workers';
import type { Container } from '../../schemas/api/container.ts';

interface Caps {
  readonly containers: number | null;
  readonly cpu_millis: number | null;
  readonly mem_bytes: number | null;
}
type Usage = Readonly<Record<keyof Caps, number>>;
type Spec = Pick<Container, 'name' | 'registry' | 'repository' | 'tag' | 'digest' | 'ports' | 'env'> &
  Pick<Container, 'cpu_limit' | 'mem_limit'>;

interface Outcome {
  readonly status: number;
  readonly body: string;
}

interface TenantStub {
  allow(caps: Caps): Promise<Outcome>;
  create(tenant: string, spec: Spec, amounts: Usage): Promise<Outcome>;
  read(id: string): Promise<Outcome>;
}

interface Env {
  readonly tenants: { idFromName(name: string): unknown; get(id: unknown): TenantStub };
  readonly jwk: { readonly kty: string; readonly crv: string; readonly x: string };
  readonly issuer: string;
  readonly audience: string;
}

const refusal = (status: number, error: string, more: object = {}): Outcome => ({
  status,
  body: JSON.stringify({ error, ...more }),
});

const dimensions = ['containers', 'cpu_millis', 'mem_bytes'] as const;
const unused: Usage = { containers: 0, cpu_millis: 0, mem_bytes: 0 };

export class Tenant extends DurableObject<Env> implements TenantStub {
  readonly #sql: Sql;
  #caps: Caps = unused;
  #usage: Usage = unused;

  constructor(ctx: unknown, env: Env) {
    super(ctx, env);
    this.#sql = this.ctx.storage.sql;
    for (const statement of [
      'CREATE TABLE IF NOT EXISTS tenant (one INTEGER PRIMARY KEY, caps TEXT NOT NULL, usage TEXT NOT NULL)',
      'CREATE TABLE IF NOT EXISTS containers (id TEXT PRIMARY KEY, name TEXT NOT NULL UNIQUE, body TEXT NOT NULL)',
      'CREATE TABLE IF NOT EXISTS events (id INTEGER PRIMARY KEY, at TEXT, container TEXT, type TEXT, status TEXT)',
    ])
      this.#sql.exec(statement);
    for (const row of this.#sql.exec<{ caps: string; usage: string }>('SELECT caps, usage FROM tenant')) {
      this.#caps = JSON.parse(row.caps) as Caps;
      this.#usage = JSON.parse(row.usage) as Usage;
    }
  }

  allow(caps: Caps): Promise<Outcome> {
    this.#caps = caps;
    this.#store();
    return Promise.resolve({ status: 200, body: '{"data":{}}' });
  }

  create(tenant: string, spec: Spec, amounts: Usage): Promise<Outcome> {
    const usage = { ...this.#usage };
    for (const dimension of dimensions) {
      usage[dimension] += amounts[dimension];
      const cap = this.#caps[dimension];
      if (cap !== null && usage[dimension] > cap) return Promise.resolve(refusal(403, 'over_quota'));
    }
    const at = new Date().toISOString();
    const id = crypto.randomUUID();
    const { name, registry, repository, tag, digest, ports, env, cpu_limit, mem_limit } = spec;
    const container = {
      ...{ id, tenant_id: tenant, name, host_key: null, registry, repository, tag, digest },
      ...{ pull_policy: 'if_not_present', ports, env, cpu_limit, mem_limit, status: 'pending' },
      ...{ inserted_at: at, updated_at: at },
    };
    const body = JSON.stringify({ data: container });
    for (const _ of this.#sql.exec('SELECT 1 FROM containers WHERE name = ?', name)) {
      return Promise.resolve(refusal(422, 'invalid', { details: { name: ['has already been taken'] } }));
    }
    this.#sql.exec('INSERT INTO containers (id, name, body) VALUES (?, ?, ?)', id, name, body);
    this.#sql.exec(
      'INSERT INTO events (at, container, type, status) VALUES (?, ?, ?, ?)',
      at,
      id,
      'created',
      'pending',
    );
    this.#usage = usage;
    this.#store();
    return Promise.resolve({ status: 201, body });
  }

  read(id: string): Promise<Outcome> {
    for (const { body } of this.#sql.exec<{ body: string }>('SELECT body FROM containers WHERE id = ?', id)) {
      return Promise.resolve({ status: 200, body });
    }
    return Promise.resolve(refusal(404, 'not_found'));
  }

  #store(): void {
    this.#sql.exec(
      'INSERT OR REPLACE INTO tenant (one, caps, usage) VALUES (1, ?, ?)',
      JSON.stringify(this.#caps),
      JSON.stringify(this.#usage),
    );
  }
}

interface Caller {
  readonly tenant: string;
  readonly isOperator: boolean;
  readonly expiresAtS: number;
}

const verified = new Map<string, Caller>();
const verifiedMax = 20_000;
const bytesOf = (part: string): Uint8Array<ArrayBuffer> =>
  Uint8Array.from(atob(part.replaceAll('-', '+').replaceAll('_', '/')), (char) => char.charCodeAt(0));
const jsonOf = (part: string): Record<string, unknown> =>
  JSON.parse(new TextDecoder().decode(bytesOf(part))) as Record<string, unknown>;

async function verify(token: string, env: Env): Promise<Caller | undefined> {
  const [head = '', claims = '', signature = ''] = token.split('.');
  if (signature === '' || jsonOf(head)['alg'] !== 'EdDSA') return undefined;
  const { kty, crv, x } = env.jwk;
  const key = await crypto.subtle.importKey('jwk', { kty, crv, x }, { name: 'Ed25519' }, false, ['verify']);
  const signed = new TextEncoder().encode(`${head}.${claims}`);
  if (!(await crypto.subtle.verify('Ed25519', key, bytesOf(signature), signed))) return undefined;
  const { iss, aud, exp, tenant_id: tenant, scope } = jsonOf(claims);
  if (iss !== env.issuer || aud !== env.audience || typeof exp !== 'number' || typeof tenant !== 'string') {
    return undefined;
  }
  const caller = { tenant, isOperator: scope === 'operator', expiresAtS: exp };
  if (verified.size >= verifiedMax) verified.clear();
  verified.set(token, caller);
  return caller;
}

async function callerOf(request: Request, env: Env): Promise<Caller | undefined> {
  const token = request.headers.get('authorization')?.slice('Bearer '.length) ?? '';
  const known = verified.get(token) ?? (await verify(token, env).catch(() => undefined));
  return known !== undefined && known.expiresAtS * 1000 > Date.now() ? known : undefined;
}

const namePattern = /^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$/;
const imagePattern = /^[A-Za-z0-9._:/-]{1,255}$/;
const memUnits: Readonly<Record<string, number>> = { k: 1024, m: 1024 ** 2, g: 1024 ** 3 };

/** The spec with defaults, and its amounts for the quota; undefined if the body is invalid. */
function specOf(body: Partial<Spec>): { spec: Spec; amounts: Usage } | undefined {
  const { name = '', registry = 'docker.io', repository = null, tag = 'latest', digest = null } = body;
  const { ports = [], env = {}, cpu_limit = '0.5', mem_limit = '256m' } = body;
  const texts = [registry, repository ?? 'none', tag ?? 'none', digest ?? 'none'];
  if (!namePattern.test(name) || !texts.every((text) => imagePattern.test(text))) return undefined;
  if (!Array.isArray(ports) || typeof env !== 'object') return undefined;
  const cpuMillis = Math.round(Number(cpu_limit) * 1000);
  const memBytes = Number.parseInt(mem_limit) * (memUnits[mem_limit.slice(-1)] ?? 1);
  if (!(cpuMillis > 0) || !(memBytes > 0)) return undefined;
  return {
    spec: { name, registry, repository, tag, digest, ports, env, cpu_limit, mem_limit },
    amounts: { containers: 1, cpu_millis: cpuMillis, mem_bytes: memBytes },
  };
}

const compute = '/api/v2/compute';
const tenants = '/api/v2/operator/tenants/';

async function answer(request: Request, path: string, caller: Caller | undefined, env: Env): Promise<Outcome> {
  if (caller === undefined) return refusal(401, 'unauthenticated');
  const stub = (tenant: string): TenantStub => env.tenants.get(env.tenants.idFromName(tenant));
  if (request.method === 'GET' && path.startsWith(`${compute}/`)) {
    return stub(caller.tenant).read(path.slice(compute.length + 1));
  }
  if (request.method === 'POST' && path === compute) {
    const made = specOf((await request.json()) as Partial<Spec>);
    if (made === undefined) return refusal(422, 'invalid');
    return stub(caller.tenant).create(caller.tenant, made.spec, made.amounts);
  }
  if (request.method === 'PUT' && path.startsWith(tenants) && caller.isOperator) {
    return stub(path.slice(tenants.length)).allow(((await request.json()) as { caps: Caps }).caps);
  }
  return refusal(404, 'not_found');
}

export default {
  async fetch(request: Request, env: Env): Promise<Response> {
    const path = new URL(request.url).pathname;
    const caller = await callerOf(request, env);
    const { status, body } = await answer(request, path, caller, env);
    const requestId = crypto.randomUUID();
    console.log(
      JSON.stringify({ event: 'request', requestId, method: request.method, status, tenant: caller?.tenant }),
    );
    return new Response(body, {
      status,
      headers: { 'content-type': 'application/json', 'cache-control': 'no-store', 'x-request-id': requestId },
    });
  },
};
