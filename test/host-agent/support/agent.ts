/** The agent as a process, from the compiled main.ts. */
import { spawn, type ChildProcess } from 'node:child_process';
import { once } from 'node:events';
import { createInterface } from 'node:readline';
import type { Test } from 'tap';
import { enter, newMark, strike } from '../../../dev/process/ledger.ts';
import { processName } from '../../../dev/process/proc.ts';
import { programFile } from '../../../dev/stack/programs.ts';
import { until } from '../../support/until.ts';
import type { ControlPlane } from './control-plane.ts';
import { joinToken } from './enrolment.ts';

export interface LogLine {
  readonly level: string;
  readonly event: string;
  readonly [field: string]: unknown;
}

export interface AgentProcess {
  readonly lines: LogLine[];
  readonly stateDir: string;
  readonly child: ChildProcess;
  /** `undefined` while it runs. */
  exitCode(): number | undefined;
  exited(): Promise<number>;
  kill9(): Promise<void>;
  stop(): Promise<number>;
  logged(event: string, check?: (line: LogLine) => boolean, deadlineMs?: number): Promise<LogLine>;
  metrics(): Promise<string>;
}

export interface AgentOptions {
  readonly dockerHost: string;
  readonly stateDir: string;
  readonly controlPlane: ControlPlane;
  readonly env?: NodeJS.ProcessEnv;
}

export const quick = {
  HEARTBEAT_INTERVAL: '300ms',
  SYNC_INTERVAL: '2s',
  STOP_GRACE: '2s',
  RESTART_BACKOFF_MIN: '200ms',
  RESTART_BACKOFF_MAX: '2s',
  RETRY_MIN: '50ms',
  RETRY_MAX: '500ms',
  // The registry of the run, fakes on loopback, and names that only fake engines get.
  REGISTRIES_ALLOWED: 'docker.io,127.0.0.1:*,*.example',
  // With a firewall, every agent would run a probe container beside those of the test.
  CONTAINER_FIREWALL: 'off',
  // Each sandbox that waits costs the engine as much as a container.
  LONGSHORE_SANDBOX_POOL: '1',
  METRICS_PORT: '0',
  LOG_LEVEL: 'debug',
};

/** Even if this process is killed: then the ledger's guard ends the agent. */
function endWithUs(child: ChildProcess): void {
  const name = child.pid === undefined ? undefined : processName(child.pid);
  if (name === undefined) return;
  const id = newMark();
  enter({ kind: 'process', id, process: name });
  child.once('exit', () => strike(id));
}

export function startAgent(t: Test, { dockerHost, stateDir, controlPlane, env }: AgentOptions): AgentProcess {
  const child = spawn(process.execPath, [programFile('host-agent')], {
    env: {
      ...process.env,
      ...quick,
      DOCKER_HOST: dockerHost,
      STATE_DIR: stateDir,
      LONGSHORE_URL: controlPlane.gatewayUrl,
      LONGSHORE_JOIN_TOKEN: joinToken,
      ...env,
    },
    stdio: ['ignore', 'ignore', 'pipe'],
  });
  const lines: LogLine[] = [];
  const bugs: string[] = [];
  createInterface({ input: child.stderr }).on('line', (text) => {
    try {
      lines.push(JSON.parse(text) as LogLine);
    } catch {
      bugs.push(text);
    }
  });
  const exit = once(child, 'exit').then(([code]) => (code as number | null) ?? -1);
  endWithUs(child);
  const isRunning = () => child.exitCode === null && child.signalCode === null;
  t.teardown(async () => {
    if (isRunning()) child.kill('SIGKILL');
    await exit;
    if (t.passing()) return;
    const tail = lines.slice(-60).map((line) => JSON.stringify(line));
    t.comment([...tail, ...bugs].join('\n'));
  });

  const agent: AgentProcess = {
    lines,
    stateDir,
    child,
    exitCode: () => (isRunning() ? undefined : (child.exitCode ?? -1)),
    exited: () => exit,
    kill9: async () => {
      child.kill('SIGKILL');
      await exit;
    },
    stop: () => {
      child.kill('SIGTERM');
      return exit;
    },
    logged: (event, check = () => true, deadlineMs = 30_000) =>
      until(
        () => `log event ${event}; last: ${JSON.stringify(lines.slice(-5))} ${bugs.slice(-5).join('\n')}`,
        () => lines.find((line) => line.event === event && check(line)),
        undefined,
        deadlineMs,
      ),
    metrics: async () => {
      const { url } = await agent.logged('metrics_listening');
      const answer = await fetch(String(url), { signal: AbortSignal.timeout(30_000) });
      return answer.text();
    },
  };
  return agent;
}
