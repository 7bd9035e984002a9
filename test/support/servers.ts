/**
 * Servers that all test files of a run share. `npm test` starts them once; a single file run by
 * hand starts its own. Whatever a test creates on a shared server needs a unique name.
 */
import { findEngine, startPrivateEngine } from '../../dev/servers/engine.ts';
import { pushDemoImage, startRegistry } from '../../dev/servers/registry.ts';
import { temporaryFolder } from './folder.ts';
import type { Lifetime } from './runner/lifetime.ts';

const given = (name: string): string | undefined => {
  const value = process.env[name];
  return value === '' ? undefined : value;
};

export const canStartEngine = process.platform === 'linux' && process.getuid?.() === 0;

/** Reason to skip tests that start their own engine on this machine, or false. */
export const skipWithoutPrivateEngine = canStartEngine ? false : 'starting an engine needs Linux and root';

/** The shared engine, as a value of DOCKER_HOST. */
export async function sharedEngine(t: Lifetime): Promise<string> {
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

/** The shared registry, as `127.0.0.1:port`; it holds the demo image. */
export async function sharedRegistry(t: Lifetime): Promise<string> {
  const running = given('LONGSHORE_TEST_REGISTRY');
  if (running !== undefined) return running;
  const registry = await startRegistry({ folder: temporaryFolder(t) });
  t.teardown(() => registry.stop());
  await pushDemoImage(registry.address);
  return registry.address;
}
