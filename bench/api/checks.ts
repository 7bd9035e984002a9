/** Checks before the measurements that each store enforces quotas and names and syncs to disk. */
import { allow, callerOf, declare, image, type Ground, type Store } from './ground.ts';
import { countSyncs } from './syncs.ts';

const tracedCreates = 20;

/** @throws if the store accepts a create over a quota, a duplicate name or a forged token */
async function checkRefusals({ systems: [system] }: Store, ground: Ground): Promise<void> {
  const tenant = await ground.tenant('checked');
  await allow(system, ground, tenant, 2);
  await declare(system, tenant, 'first');
  const client = await callerOf(system, tenant.token);
  const refused = async (name: string, status: number, error: string): Promise<void> => {
    const reply = await client.create({ name, ...image });
    const code = (reply.body as { error?: unknown } | undefined)?.error;
    if (reply.status !== status || code !== error) {
      throw new Error(`${system.name}: expected ${error}, got ${reply.status} ${reply.text}`);
    }
  };
  await refused('first', 422, 'invalid');
  await declare(system, tenant, 'second');
  await refused('third', 403, 'over_quota');
  const stranger = await callerOf(system, `${tenant.token}x`);
  const reply = await stranger.create({ name: 'fourth', ...image });
  if (reply.status !== 401) throw new Error(`${system.name}: expected 401 for a forged token, got ${reply.status}`);
}

/** Disk syncs per create, for sequential creates; undefined without strace. */
async function syncsPerCreate(store: Store, ground: Ground): Promise<number | undefined> {
  const [system] = store.systems;
  const tenant = await ground.tenant('traced');
  await allow(system, ground, tenant);
  await declare(system, tenant, 'before');
  return countSyncs(store.pid, ground, async () => {
    for (let number = 0; number < tracedCreates; number++) await declare(system, tenant, `traced-${number}`);
    return tracedCreates;
  });
}

/** Checks a store. @returns a remark about its durability @throws if the store fails a check */
export async function check(store: Store, ground: Ground): Promise<string> {
  await checkRefusals(store, ground);
  const syncs = await syncsPerCreate(store, ground).catch(() => undefined);
  return syncs === undefined
    ? `${store.name}: disk syncs were not counted, because strace is missing or failed.`
    : `${store.name}: ${syncs.toFixed(1)} fsync or fdatasync calls per create, over ${tracedCreates} sequential creates.`;
}
