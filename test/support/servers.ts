/**
 * The servers that a whole run shares: those that `npm test` started, or, for a single file run by
 * hand, servers for it alone. Give what you make on a shared server a name that no other file uses.
 */
import type { Test } from 'tap';
import { findEngine, startPrivateEngine } from '../../dev/servers/engine.ts';
import { pushDemoImage, startRegistry } from '../../dev/servers/registry.ts';
import { temporaryFolder } from './folder.ts';

const given = (name: string): string | undefined => {
  const value = process.env[name];
  return value === '' ? undefined : value;
};

export const canStartEngine = process.platform === 'linux' && process.getuid?.() === 0;

/** Why a test that starts its own engine must be skipped here; false where it can run. */
export const skipWithoutPrivateEngine = canStartEngine ? false : 'starting an engine needs Linux and root';

/** A DOCKER_HOST value. */
export async function sharedEngine(t: Test): Promise<string> {
  const running = given('LONGSHORE_TEST_DOCKER_HOST');
  if (running !== undefined) return running;
  if (!canStartEngine) {
    const engine = await findEngine(process.env);
    if (engine === undefined) throw new Error('no Docker engine answers, and starting one needs Linux and root');
    return engine.host;
  }
  const engine = await startPrivateEngine({ dir: temporaryFolder(t), firewall: true, throwaway: true });
  t.teardown(() => engine.stop());
  return engine.host;
}

/** `127.0.0.1:port` of a registry that holds the demo image. */
export async function sharedRegistry(t: Test): Promise<string> {
  const running = given('LONGSHORE_TEST_REGISTRY');
  if (running !== undefined) return running;
  const registry = await startRegistry({ folder: temporaryFolder(t) });
  t.teardown(() => registry.stop());
  await pushDemoImage(registry.address);
  return registry.address;
}
