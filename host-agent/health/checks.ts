/**
 * Checks the health of running containers over the network: one check at a time for each, from its
 * start to its end. The engine runs checks that are commands (create-body.ts). Results are kept in
 * memory alone: an agent that starts checks at once.
 */
import { EventEmitter } from 'node:events';
import { sleep } from '../../lib/time/backoff.ts';
import { textOfCheck, type HealthCheck } from '../../schemas/api/policy.ts';
import type { ContainerId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import type { EngineState } from '../docker/observed.ts';
import type { Metrics } from '../metrics.ts';
import type { Endpoint, Probe } from './probe.ts';
import { afterCheck, nextCheckMs, unchecked, type HealthState } from './state.ts';

type Running = Extract<EngineState, { phase: 'running' }>;

interface HealthEvents {
  /** The health of the container has changed. */
  changed: [id: ContainerId];
}

export interface HealthChecks {
  readonly events: EventEmitter<HealthEvents>;
  /**
   * The container with the health that its checks found; checks begin with the first observation of
   * a run. Waits a moment for the first check of a container that has long been up, so that a
   * restart of the agent does not show it as starting.
   */
  seen(id: ContainerId, state: Running, check: HealthCheck): Promise<Running>;
  /** The container does not run, or needs no checks. */
  end(id: ContainerId): void;
  stop(): void;
}

interface HealthParts {
  readonly probe: Probe;
  /**
   * `false` if the engine is on another machine: only published ports of its containers can be
   * reached.
   */
  readonly isLocal: boolean;
  readonly steadyMs: () => number;
  readonly metrics: Pick<Metrics, 'healthCheck'>;
}

interface Checked {
  /** Identifies the run, the check and the address. */
  readonly key: string;
  readonly abort: AbortController;
  readonly first: Promise<void>;
  state: HealthState;
}

export function createHealthChecks({ probe, isLocal, steadyMs, metrics }: HealthParts): HealthChecks {
  const events = new EventEmitter<HealthEvents>();
  const checks = new Map<ContainerId, Checked>();

  const end = (id: ContainerId): void => {
    checks.get(id)?.abort.abort();
    checks.delete(id);
  };

  const begin = (id: ContainerId, key: string, running: Running, check: HealthCheck): Checked => {
    end(id);
    const abort = new AbortController();
    let isChecked = (): void => undefined;
    const first = new Promise<void>((resolve) => (isChecked = resolve));
    const checked: Checked = { key, abort, first, state: unchecked };
    checks.set(id, checked);
    const upMs = (): number => steadyMs() - running.startedAtMs;
    const run = async (): Promise<void> => {
      while (!abort.signal.aborted) {
        const endpoint = endpointAt(running, portOf(check), isLocal);
        const fault = typeof endpoint === 'string' ? endpoint : await probe(check, endpoint, abort.signal);
        if (abort.signal.aborted) return;
        metrics.healthCheck(fault === undefined ? 'passed' : 'failed');
        const before = checked.state;
        checked.state = afterCheck(before, fault, check, upMs());
        isChecked();
        if (checked.state.health !== before.health) events.emit('changed', id);
        await sleep(nextCheckMs(checked.state, check, upMs()), abort.signal);
      }
    };
    void run().finally(isChecked);
    return checked;
  };

  return {
    events,
    seen: async (id, state, check) => {
      const key = `${state.run} ${state.ip ?? ''} ${textOfCheck(check)}`;
      const known = checks.get(id);
      const checked = known?.key === key ? known : begin(id, key, state, check);
      const isOld = steadyMs() - state.startedAtMs > check.start_period * 1000;
      if (isOld) await Promise.race([checked.first, sleep(limits.healthStartMs, checked.abort.signal)]);
      const { health, fault } = checked.state;
      return { ...state, health, ...(fault === undefined ? {} : { healthFault: fault }) };
    },
    end,
    stop: () => {
      for (const id of [...checks.keys()]) end(id);
    },
  };
}

const portOf = ({ http, tcp }: HealthCheck): number => http?.port ?? tcp?.port ?? 0;

/** The address at which a port of a container is reached from here, or why it is not. */
export function endpointAt(
  { ip, addresses }: { readonly ip?: string | undefined; readonly addresses: Running['addresses'] },
  port: number,
  isLocal: boolean,
): Endpoint | string {
  if (isLocal) return ip === undefined ? 'the container has no address' : { host: ip, port };
  const published = addresses.find((one) => one.port === `${port}/tcp`)?.address;
  if (published === undefined) return `port ${port} is not published, and the container is on another machine`;
  const { hostname, port: hostPort } = new URL(`tcp://${published}`);
  return { host: hostname.replace(/^\[(.*)\]$/, '$1'), port: Number(hostPort) };
}
