/**
 * The API that people would write instead of Longshore's: Fastify, a pool of PostgreSQL
 * connections, and one transaction for each create. The transaction is a single statement, which
 * takes one round trip instead of four.
 */
import { readFileSync } from 'node:fs';
import Fastify, { type FastifyReply, type FastifyRequest } from 'fastify';
import { createLocalJWKSet, jwtVerify, type JSONWebKeySet } from 'jose';
import pg from 'pg';
import pino from 'pino';
import { v7 } from 'uuid';
import { CreateBody } from '../../schemas/api/container.ts';
import type { ContainerSpec } from '../../schemas/api/fields/container.ts';
import { cpuMillis, memBytes } from '../../schemas/quantity.ts';
import type { Caps } from '../../schemas/api/tenant.ts';

const setting = (name: string): string => {
  const value = process.env[name];
  if (value === undefined) throw new Error(`${name} is not set`);
  return value;
};

/** Buffers the log as Longshore buffers its own. */
const destination = pino.destination({ fd: 2, sync: true, minLength: 8 * 1024 });
setInterval(() => destination.flushSync(), 200).unref();
const app = Fastify({
  loggerInstance: pino({ level: setting('LOG_LEVEL') }, destination),
  // Fastify would log two lines for each request; the hook below logs one.
  disableRequestLogging: true,
});
const pool = new pg.Pool({
  host: setting('PGHOST'),
  user: 'bench',
  database: 'postgres',
  max: Number(setting('POOL')),
});
app.addHook('onResponse', (request, reply, done) => {
  const { method, routeOptions, caller } = request;
  const ms = Math.round(reply.elapsedTime * 100) / 100;
  request.log.info({ method, route: routeOptions.url, status: reply.statusCode, ms, tenant: caller.tenant }, 'request');
  done();
});

interface Caller {
  readonly tenant: string;
  readonly isOperator: boolean;
  readonly expiresAtS: number;
}

declare module 'fastify' {
  interface FastifyRequest {
    caller: Caller;
  }
}

const nobody: Caller = { tenant: '', isOperator: false, expiresAtS: 0 };
const jwks = createLocalJWKSet(JSON.parse(readFileSync(setting('JWKS_FILE'), 'utf8')) as JSONWebKeySet);
const [issuer, audience] = [setting('AUTH_ISSUER'), setting('AUTH_AUDIENCE')];
const verified = new Map<string, Caller>();
const verifiedMax = 20_000;

async function verify(token: string): Promise<Caller> {
  const { payload } = await jwtVerify(token, jwks, { issuer, audience, requiredClaims: ['exp', 'sub', 'tenant_id'] });
  const caller = {
    tenant: String(payload['tenant_id']),
    isOperator: payload['scope'] === 'operator',
    expiresAtS: payload.exp ?? 0,
  };
  if (verified.size >= verifiedMax) verified.clear();
  verified.set(token, caller);
  return caller;
}

const refuse = (reply: FastifyReply, status: number, error: string, more: object = {}): FastifyReply =>
  reply.code(status).send({ error, ...more });

// Fastify accepts no object as a default here; the hook sets `caller` before any handler runs.
app.decorateRequest('caller', null as never);
app.addHook('onRequest', (request, reply, done) => {
  reply.header('x-request-id', request.id).header('cache-control', 'no-store');
  const token = request.headers.authorization?.slice('Bearer '.length) ?? '';
  const known = verified.get(token);
  if (known !== undefined && known.expiresAtS * 1000 > Date.now()) {
    request.caller = known;
    done();
    return;
  }
  verify(token).then(
    (caller) => {
      request.caller = caller;
      done();
    },
    () => {
      request.caller = nobody;
      refuse(reply, 401, 'unauthenticated');
    },
  );
});
app.setErrorHandler((error: { validation?: unknown; message: string }, request, reply) => {
  if (error.validation !== undefined) return refuse(reply, 422, 'invalid', { details: { _: [error.message] } });
  request.log.error(error);
  return refuse(reply, 500, 'internal');
});

const string = { type: 'string' } as const;
const orNull = { type: 'string', nullable: true } as const;
const container = {
  type: 'object',
  properties: {
    id: string,
    tenant_id: string,
    name: string,
    host_key: orNull,
    registry: string,
    repository: orNull,
    tag: orNull,
    digest: orNull,
    pull_policy: string,
    ports: { type: 'array', items: { type: 'integer' } },
    env: { type: 'object', additionalProperties: string },
    cpu_limit: string,
    mem_limit: string,
    status: string,
    inserted_at: string,
    updated_at: string,
  },
} as const;
const one = { type: 'object', properties: { data: container } };
const many = { type: 'object', properties: { data: { type: 'array', items: container } } };

interface Row {
  readonly inserted_at: Date;
  readonly updated_at: Date;
}

const shown = (row: Row): object => ({
  ...row,
  inserted_at: row.inserted_at.toISOString(),
  updated_at: row.updated_at.toISOString(),
});

const columns =
  'id, tenant_id, name, host_key, registry, repository, tag, digest, pull_policy, ports, env, cpu_limit, mem_limit, status, inserted_at, updated_at';
const fits = (dimension: string, amount: string): string =>
  `(cap_${dimension} IS NULL OR ${dimension} + ${amount} <= cap_${dimension})`;
const insert = `
  WITH tenant AS (
    UPDATE tenants SET containers = containers + 1, cpu_millis = cpu_millis + $11, mem_bytes = mem_bytes + $12
    WHERE id = $1 AND ${fits('containers', '1')} AND ${fits('cpu_millis', '$11')} AND ${fits('mem_bytes', '$12')}
    RETURNING id
  ), container AS (
    INSERT INTO containers (${columns})
    SELECT $2, tenant.id, $3, NULL, $4, $5, $6, $7, 'if_not_present', $8, $9, $10, $13, 'pending', now(), now()
    FROM tenant RETURNING ${columns}
  ), event AS (
    INSERT INTO events (tenant_id, container_id, type, status) SELECT tenant_id, id, 'created', status FROM container
  )
  SELECT * FROM container`;
const uniqueViolation = '23505';

app.post('/api/v2/compute', { schema: { body: CreateBody, response: { 201: one } } }, async (request, reply) => {
  const spec = request.body as Partial<ContainerSpec> & Pick<ContainerSpec, 'name' | 'cpu_limit' | 'mem_limit'>;
  const values = [
    request.caller.tenant,
    v7(),
    spec.name,
    spec.registry,
    spec.repository,
    spec.tag,
    spec.digest,
    JSON.stringify(spec.ports ?? []),
    JSON.stringify(spec.env ?? {}),
    spec.cpu_limit,
    cpuMillis(spec.cpu_limit),
    memBytes(spec.mem_limit),
    spec.mem_limit,
  ];
  try {
    const { rows } = await pool.query<Row>({ name: 'create', text: insert, values });
    const [row] = rows;
    if (row === undefined) return await refuse(reply, 403, 'over_quota');
    return await reply.code(201).send({ data: shown(row) });
  } catch (error) {
    if ((error as { code?: string }).code !== uniqueViolation) throw error;
    return refuse(reply, 422, 'invalid', { details: { name: ['has already been taken'] } });
  }
});

const select = `SELECT ${columns} FROM containers WHERE tenant_id = $1 AND id = $2`;
type WithId = FastifyRequest<{ Params: { id: string } }>;
app.get('/api/v2/compute/:id', { schema: { response: { 200: one } } }, async (request: WithId, reply) => {
  const values = [request.caller.tenant, request.params.id];
  const { rows } = await pool.query<Row>({ name: 'read', text: select, values });
  const [row] = rows;
  return row === undefined ? refuse(reply, 404, 'not_found') : reply.send({ data: shown(row) });
});

// Ids are UUIDv7, so their order is the order of creation.
const selectMany = `SELECT ${columns} FROM containers WHERE tenant_id = $1 ORDER BY id DESC LIMIT 100`;
app.get('/api/v2/compute', { schema: { response: { 200: many } } }, async (request, reply) => {
  const { rows } = await pool.query<Row>({ name: 'list', text: selectMany, values: [request.caller.tenant] });
  return reply.send({ data: rows.map(shown) });
});

const selectQuota = `SELECT '*' AS region,
  json_build_object('containers', containers, 'cpu_millis', cpu_millis, 'mem_bytes', mem_bytes) AS usage,
  json_build_object('containers', cap_containers, 'cpu_millis', cap_cpu_millis, 'mem_bytes', cap_mem_bytes) AS caps
  FROM tenants WHERE id = $1`;
app.get('/api/v2/compute/quota', async (request, reply) => {
  const { rows } = await pool.query<object>({ name: 'quota', text: selectQuota, values: [request.caller.tenant] });
  return reply.send({ data: rows[0] });
});

const upsert = `INSERT INTO tenants (id, cap_containers, cap_cpu_millis, cap_mem_bytes) VALUES ($1, $2, $3, $4)
  ON CONFLICT (id) DO UPDATE SET cap_containers = $2, cap_cpu_millis = $3, cap_mem_bytes = $4`;
type WithTenant = FastifyRequest<{ Params: { tenant: string }; Body: { caps: Caps } }>;
app.put('/api/v2/operator/tenants/:tenant', async (request: WithTenant, reply) => {
  if (!request.caller.isOperator) return refuse(reply, 403, 'forbidden');
  const { containers, cpu_millis: cpu, mem_bytes: mem } = request.body.caps;
  await pool.query(upsert, [request.params.tenant, containers, cpu, mem]);
  return reply.send({ data: { id: request.params.tenant } });
});

const schema = `
  CREATE TABLE IF NOT EXISTS tenants (
    id text PRIMARY KEY, cap_containers bigint, cap_cpu_millis bigint, cap_mem_bytes bigint,
    containers bigint NOT NULL DEFAULT 0, cpu_millis bigint NOT NULL DEFAULT 0, mem_bytes bigint NOT NULL DEFAULT 0
  ) WITH (fillfactor = 50);
  CREATE TABLE IF NOT EXISTS containers (
    tenant_id text NOT NULL REFERENCES tenants, id uuid NOT NULL, name text NOT NULL, host_key text,
    registry text NOT NULL, repository text, tag text, digest text, pull_policy text NOT NULL, ports jsonb NOT NULL,
    env jsonb NOT NULL, cpu_limit text NOT NULL, mem_limit text NOT NULL, status text NOT NULL,
    inserted_at timestamptz NOT NULL, updated_at timestamptz NOT NULL,
    PRIMARY KEY (tenant_id, id), UNIQUE (tenant_id, name)
  );
  CREATE TABLE IF NOT EXISTS events (
    id bigserial PRIMARY KEY, at timestamptz NOT NULL DEFAULT now(), tenant_id text NOT NULL, container_id uuid NOT NULL,
    type text NOT NULL, status text NOT NULL
  );`;

await pool.query(schema);
await app.listen({ host: '127.0.0.1', port: Number(setting('PORT')) });
process.on('SIGTERM', () => {
  destination.flushSync();
  process.exit(0);
});
