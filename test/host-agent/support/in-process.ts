/**
 * The agent inside the test's own process, for what a program cannot have: another clock, a second
 * machine.
 */
import type { Test } from 'tap';
import { Registry } from 'prom-client';
import { startAgent } from '../../../host-agent/agent.ts';
import { enrol, keyFrom, loadIdentity, loadSeed } from '../../../host-agent/link/identity/identity.ts';
import { settings } from '../../../host-agent/settings.ts';
import type { MachineTime } from '../../../host-agent/link/machine-time.ts';
import type { Clock } from '../../../lib/time/clock.ts';
import { readSettings } from '../../../lib/config.ts';
import type { Stoppable } from '../../../lib/lifecycle.ts';
import { createLog, type Fields, type Log } from '../../../lib/log.ts';
import { quick } from './agent.ts';
import type { ControlPlane } from './control-plane.ts';
import { joinToken } from './enrolment.ts';

export interface Entry extends Fields {
  readonly level: string;
  readonly event: string;
}

export interface LocalAgent {
  readonly entries: readonly Entry[];
  stop(): Promise<void>;
}

export interface LocalAgentOptions {
  readonly dockerHost: string;
  readonly stateDir: string;
  readonly controlPlane: ControlPlane;
  readonly clock: Clock;
  readonly machineTime?: MachineTime;
  readonly env?: NodeJS.ProcessEnv;
}

function keepingLog(entries: Entry[]): Log {
  const silent = createLog('test', 'silent');
  const keep = (level: string) => (event: string, fields?: Fields) => void entries.push({ ...fields, level, event });
  const log: Log = {
    ...silent,
    debug: keep('debug'),
    info: keep('info'),
    warn: keep('warn'),
    error: keep('error'),
    child: () => log,
  };
  return log;
}

export async function startLocalAgent(t: Test, options: LocalAgentOptions): Promise<LocalAgent> {
  const { stateDir, controlPlane, clock } = options;
  const entries: Entry[] = [];
  const log = keepingLog(entries);
  const given = readSettings(settings, {
    ...quick,
    DOCKER_HOST: options.dockerHost,
    STATE_DIR: stateDir,
    LONGSHORE_URL: controlPlane.gatewayUrl,
    ...options.env,
  });
  const machine = options.machineTime === undefined ? {} : { machineTime: options.machineTime };
  const seed = await loadSeed(stateDir);
  const identity =
    (await loadIdentity(stateDir, log)) ??
    (await enrol(
      {
        gatewayUrl: controlPlane.gatewayUrl,
        joinToken,
        publicKey: keyFrom(seed).getPublicKey(),
        backoff: { minMs: given.RETRY_MIN, maxMs: given.RETRY_MAX },
      },
      log,
      AbortSignal.timeout(60_000),
    ));
  const parts: Stoppable[] = [];
  const life = {
    onStop: (part: Stoppable) => void parts.push(part),
    fail: (event: string, error: unknown) => log.error(event, { error }),
  };
  await startAgent({ settings: given, identity, seed, registry: new Registry(), clock, log, life, ...machine });
  const stop = async (): Promise<void> => {
    for (const part of parts.splice(0).toReversed()) await part.stop();
  };
  t.teardown(stop);
  return { entries, stop };
}
