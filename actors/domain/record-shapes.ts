/**
 * Checks that a stored record has the fields that the code relies on, each of its type. The
 * checksum proves that storage did not damage the record; these checks find records that were
 * written wrong. They look only at fields that every release writes, by hand and not by a schema,
 * because a load checks a hundred thousand records. Pure.
 */
import { fieldOf, kept, shown } from '../../schemas/api/fields/container.ts';
import { containerStatuses } from '../../schemas/words.ts';
import type { StateRecord } from './records.ts';

type Check = (value: unknown) => boolean;

const text: Check = (value) => typeof value === 'string';
const number: Check = (value) => typeof value === 'number';
const flag: Check = (value) => typeof value === 'boolean';
const orNull =
  (check: Check): Check =>
  (value) =>
    value === null || check(value);
const orAbsent =
  (check: Check): Check =>
  (value) =>
    value === undefined || check(value);
const oneOf = (...known: readonly unknown[]): Check => {
  const set = new Set(known);
  return (value) => set.has(value);
};
const list =
  (check: Check): Check =>
  (value) =>
    Array.isArray(value) && value.every(check);
const map =
  (check: Check): Check =>
  (value) =>
    typeof value === 'object' && value !== null && Object.values(value).every(check);
function object(fields: Readonly<Record<string, Check>>): Check {
  const entries = Object.entries(fields);
  return (value) => {
    if (typeof value !== 'object' || value === null) return false;
    for (const [name, check] of entries) if (!check((value as Record<string, unknown>)[name])) return false;
    return true;
  };
}
/** A check that depends on the value of one field. */
const either =
  (field: string, cases: Readonly<Record<string, Check>>): Check =>
  (value) => {
    if (typeof value !== 'object' || value === null) return false;
    const chosen = (value as Record<string, unknown>)[field];
    return typeof chosen === 'string' && Object.hasOwn(cases, chosen) && cases[chosen]?.(value) === true;
  };

const idempotency = orNull(object({ key: text, bodyHash: text, untilMs: number }));
const times = { insertedAtMs: number, updatedAtMs: number };
const certificates = list(object({ serial: text, notAfterMs: number }));
const keptCertificate = object({ pem: text, serial: text, notBeforeMs: number, notAfterMs: number, privateKey: text });
const revocations = list(object({ serial: text, notAfterMs: number, atMs: number, reason: text }));
const limit = orNull(number);
const spec = Object.fromEntries([
  ...shown.map((name) => [name, fieldOf(name).isStored] as const),
  ...kept.map((name) => [name, orAbsent(fieldOf(name).isStored)] as const),
]);

const isWellFormedRecord = either('kind', {
  container: object({
    id: text,
    tenant: text,
    spec: object(spec),
    secretRefs: list(object({ env: text, secret: text })),
    configFiles: list(object({ path: text, content: text })),
    desired: oneOf('running', 'stopped', 'removed'),
    generation: number,
    placement: either('phase', {
      unplaced: () => true,
      placed: object({ host: text, region: text, since: number, chosenBy: oneOf('tenant', 'platform') }),
    }),
    history: list(text),
    rejections: list(object({ host: text, atMs: number })),
    observed: object({
      status: oneOf(...containerStatuses),
      reason: orNull(text),
      message: orNull(text),
      exit_code: orNull(number),
      restart_count: number,
      next_retry_at: orNull(text),
      started_at: orNull(text),
      addresses: list(object({ port: text, address: text })),
    }),
    observedOrder: object({ generation: number, session: number, seq: number }),
    observedAtMs: orNull(number),
    idempotency,
    ...times,
  }),
  tombstone: object({ id: text, tenant: text, history: list(text), goneAtMs: number, idempotency }),
  tenant: object({
    tenant: text,
    regions: list(text),
    caps: map(limit),
    regionCaps: map(map(limit)),
    revocations: list(
      object({
        tenant: text,
        match: either('by', {
          jti: object({ value: text }),
          sub: object({ value: text }),
          tenant: () => true,
        }),
        issuedUntilS: number,
        untilMs: number,
      }),
    ),
    updatedAtMs: number,
  }),
  secret: object({ tenant: text, name: text, version: number, sealed: text, updatedAtMs: number }),
  secret_floor: object({ tenant: text, version: number, updatedAtMs: number }),
  login: object({ tenant: text, registry: text, version: number, username: text, sealed: text, updatedAtMs: number }),
  file: object({ tenant: text, sha256: text, content: text, bytes: number, updatedAtMs: number }),
  key: object({
    tenant: text,
    id: text,
    name: text,
    scopes: list(text),
    subject: text,
    issuedAtS: number,
    expiresAtS: number,
  }),
  answer: object({
    tenant: text,
    key: text,
    request: text,
    answer: either('kind', { container: object({ id: text }), body: object({ body: text }) }),
    secret: orAbsent(object({ by: text, sealed: orNull(text), of: text })),
    updatedAtMs: number,
    untilMs: number,
  }),
  signing_key: object({ id: text, sealed: text, insertedAtMs: number, untilMs: orNull(number) }),
  host: object({
    key: text,
    region: text,
    cordoned: flag,
    draining: flag,
    capacity: orNull(object({ cpu_millis: number, mem_bytes: number, containers: number })),
    agentVersion: orNull(text),
    publicKey: orNull(text),
    join: orNull(object({ tokenHash: text, untilMs: number, spentBy: orNull(text) })),
    session: number,
    lostSinceMs: orNull(number),
    orphanWord: number,
    ...times,
  }),
  revoked_key: object({ publicKey: text, host: text, atMs: number }),
  peer: object({
    id: text,
    tenant: text,
    name: text,
    network: text,
    index: number,
    ipv4: text,
    ipv6: orNull(text),
    enabled: flag,
    expiresAtMs: orNull(number),
    routes: orNull(list(text)),
    dns: orNull(list(text)),
    localId: text,
    wireguard: object({ publicKey: text, privateKey: text, presharedKey: text }),
    certificate: keptCertificate,
    p12Password: text,
    tokens: list(object({ id: text, scope: text, hash: text, insertedAtMs: number, expiresAtMs: number })),
    renewed: certificates,
    revoked: revocations,
    generation: number,
    told: number,
    ...times,
  }),
  peer_tombstone: object({
    id: text,
    tenant: text,
    network: orNull(text),
    generation: number,
    told: flag,
    revoked: revocations,
    goneAtMs: number,
  }),
  network: object({
    name: text,
    settings: object({
      endpoint: text,
      wireguard_port: number,
      ipv4_pool: text,
      ipv6_pool: orNull(text),
      routes: list(text),
      dns: list(text),
      mtu: orNull(number),
      proxy: orNull(object({ host: text, port: number })),
      tenants: orNull(list(text)),
    }),
    wireguard: object({ publicKey: text, privateKey: text }),
    ca: keptCertificate,
    server: keptCertificate,
    ...times,
  }),
  lease: object({
    network: text,
    index: number,
    tenant: text,
    peer: text,
    state: either('phase', {
      reserved: object({ atMs: number }),
      held: object({
        generation: number,
        enabled: flag,
        expiresAtMs: orNull(number),
        wireguardPublicKey: text,
        presharedKey: text,
        localId: text,
        certificates,
      }),
    }),
  }),
  revoked: object({ network: text, serial: text, notAfterMs: number, atMs: number, reason: text }),
});

export const isWellFormed = (value: unknown): value is StateRecord => isWellFormedRecord(value);
