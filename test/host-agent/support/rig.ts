/** Surroundings of a test of a running agent: engine, registry, control plane and agent. */
import type { Test } from 'tap';
import { createHash } from 'node:crypto';
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pushTestImage } from '../../../dev/servers/registry.ts';
import { sharedEngine, sharedRegistry } from '../../support/servers.ts';
import { startAgent, type AgentProcess } from './agent.ts';
import { startControlPlane, type ControlPlane } from './control-plane.ts';
import type { Desire } from './control-plane-state.ts';
import { viewEngine, type EngineView } from './engine.ts';

export interface Rig {
  readonly controlPlane: ControlPlane;
  readonly engine: EngineView;
  readonly dockerHost: string;
  readonly registry: string;
  readonly stateDir: string;
  /** Starts the agent (again). */
  agent(env?: NodeJS.ProcessEnv): AgentProcess;
  /** An image that runs a shell script, as the start of a desire. */
  script(name: string, script: string): Promise<Desire>;
}

const images = new Map<string, Promise<string>>();

export async function startRig(t: Test, dockerHost?: string): Promise<Rig> {
  const dir = mkdtempSync(join(tmpdir(), 'longshore-agent-'));
  t.teardown(() => rmSync(dir, { recursive: true, force: true }));
  const engineHost = dockerHost ?? (await sharedEngine(t));
  const registry = await sharedRegistry(t);
  const controlPlane = await startControlPlane(t, join(dir, 'nats'));
  const engine = viewEngine(t, engineHost, controlPlane.cluster);
  const stateDir = join(dir, 'agent');
  return {
    controlPlane,
    engine,
    dockerHost: engineHost,
    registry,
    stateDir,
    agent: (env = {}) => startAgent(t, { dockerHost: engineHost, stateDir, controlPlane, env }),
    script: async (name, script) => {
      const repository = `longshore/agent-${name}`;
      // Named by its content: an engine may keep the image of an earlier version of the test.
      const tag = createHash('sha256').update(script).digest('hex').slice(0, 12);
      const key = `${registry}/${repository}:${tag}`;
      const pushed = images.get(key) ?? pushTestImage(registry, { repository, tag, cmd: ['sh', '-c', script] });
      images.set(key, pushed);
      await pushed;
      return { registry, repository, tag };
    },
  };
}

/** A script that runs until SIGTERM, and then stops at once. */
export const steady = `trap 'echo bye; exit 0' TERM; echo up; while :; do sleep 1 & wait $!; done`;
