/**
 * The ground that all systems of this section share: tenants with real tokens, caps and containers.
 */
import { join } from 'node:path';
import { prepareTokenIssuer } from '../../dev/tokens.ts';
import { anyAnswer, clientOf, type Client } from '../../test/e2e/support/client.ts';
import type { Scope } from '../../test/support/machine.ts';
import type { Bench } from '../section.ts';

export interface Tenant {
  readonly name: string;
  readonly token: string;
}

export interface Ground {
  readonly bench: Bench;
  readonly scope: Scope;
  readonly jwksFile: string;
  /** Token with the scope `operator`. */
  readonly operator: string;
  readonly tenants: readonly Tenant[];
  tenant(name: string): Promise<Tenant>;
}

/** An API process in front of a store. */
export interface System {
  readonly name: string;
  readonly baseUrl: string;
  /** True if it logs each request. */
  readonly logsRequests: boolean;
}

/** A store of containers, with one or more API processes in front of it. */
export interface Store {
  readonly name: string;
  readonly systems: readonly [System, ...System[]];
  /** Versions and settings, for the remarks of the table. */
  readonly remark: string;
  /** Process id of the server that writes to disk. */
  readonly pid: number;
}

export const compute = '/api/v2/compute';
const tokenLifetimeS = 24 * 3600;
const seeders = 16;

export async function prepareGround(bench: Bench, tenantCount: number): Promise<Omit<Ground, 'scope'>> {
  const issuer = await prepareTokenIssuer(join(bench.folder, 'tokens'));
  const tenant = async (name: string): Promise<Tenant> => ({
    name,
    token: await issuer.mint({ tenant: name, subject: `${name}-user`, lifetimeS: tokenLifetimeS }),
  });
  const tenants = await Promise.all(Array.from({ length: tenantCount }, (_, number) => tenant(`tenant-${number}`)));
  const operator = await issuer.mint({ tenant: 'ops', subject: 'op', scope: 'operator', lifetimeS: tokenLifetimeS });
  return { bench, jwksFile: issuer.jwksFile, operator, tenants, tenant };
}

/** The image of every container of this section. */
export const image = { registry: 'registry.example', repository: 'demo/web', tag: '1.0' } as const;

/** Caps that are never reached. Not null, because each create must check them. */
const ampleCaps = { containers: 1e9, cpu_millis: 1e12, mem_bytes: 1e15, deletes_per_hour: null };

/** A peer answers as the API does, but not to the letter of the OpenAPI document. */
export const callerOf = async (system: System, token: string): Promise<Client> =>
  clientOf(system.baseUrl, token, anyAnswer);

export async function allow(system: System, ground: Ground, tenant: Tenant, containers = ampleCaps.containers) {
  const operator = await callerOf(system, ground.operator);
  const caps = { ...ampleCaps, containers };
  const reply = await operator.call('PUT', `/api/v2/operator/tenants/${tenant.name}`, { caps });
  if (reply.status !== 200) throw new Error(`${system.name}: caps of ${tenant.name}: ${reply.status} ${reply.text}`);
}

export async function declare(system: System, tenant: Tenant, name: string): Promise<string> {
  const client = await callerOf(system, tenant.token);
  const { status, text, body } = await client.create({ name, ...image });
  if (status !== 201) throw new Error(`${system.name}: create: ${status} ${text}`);
  return body.data.id;
}

export interface Declared {
  readonly tenant: Tenant;
  readonly id: string;
}

/** Sets the caps of each tenant and creates `count` containers in it. */
export async function seed(
  system: System,
  ground: Ground,
  tenants: readonly Tenant[],
  count: number,
): Promise<Declared[]> {
  const waiting = [...tenants];
  const declared: Declared[] = [];
  const seeder = async (): Promise<void> => {
    for (let tenant = waiting.pop(); tenant !== undefined; tenant = waiting.pop()) {
      ground.bench.signal.throwIfAborted();
      await allow(system, ground, tenant);
      for (let number = 0; number < count; number++) {
        declared.push({ tenant, id: await declare(system, tenant, `seeded-${number}`) });
      }
    }
  };
  await Promise.all(Array.from({ length: seeders }, seeder));
  return declared;
}
