/**
 * All of Longshore, once for all files of a worker. Each file has tenants of its own, and leaves
 * the programs running as it found them.
 */
import { randomBytes } from 'node:crypto';
import { processLifetime, type Lifetime } from '../../support/runner/lifetime.ts';
import type { Client } from './client.ts';
import { startRig, type Rig } from './rig.ts';

/** Short waits, and everything switched on that any of the files looks at. */
const settings = {
  agent: {
    UPDATE_VERIFY: '1s',
    STOP_GRACE: '2s',
    RESTART_BACKOFF_MIN: '200ms',
    CONTAINER_METRICS: 'on',
    USAGE_INTERVAL: '300ms',
    USAGE_REPORT_INTERVAL: '500ms',
  },
  gateway: { VAULT_KEYS: `k1:${randomBytes(32).toString('base64')}` },
};

export interface Stack extends Rig {
  /** The id of a tenant that no other file has. */
  tenant(name: string): string;
}

let started: Promise<Rig> | undefined;
let files = 0;

export async function sharedStack(t: Lifetime): Promise<Stack> {
  const rig = await (started ??= startRig(processLifetime, settings));
  const file = ++files;
  const tenant = (name: string): string => `${name}-${file}`;
  const clients = new Map<string, Client>();
  t.teardown(async () => {
    for (const client of clients.values()) await removeAll(client);
  });
  return {
    ...rig,
    tenant,
    client: async (name, scope) => {
      const client = await rig.client(name, scope);
      if (scope === undefined) clients.set(name, client);
      return client;
    },
  };
}

/** Leaves nothing that goes on restarting while other files run. */
async function removeAll(client: Client): Promise<void> {
  const { status, body } = await client.list();
  // A test may have revoked the tenant's tokens, or asked for a tenant that no token can name.
  if (status === 200) for (const container of body.data) await client.remove(container);
}
