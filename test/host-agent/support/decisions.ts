/** Inputs of decisions: ordinary, except for what a test changes. */
import type { DesiredContainer, SyncAnswer } from '../../../schemas/wire/host.ts';
import type { ContainerId, HostKey, TenantId } from '../../../schemas/ids.ts';
import { blank, type RestartState } from '../../../host-agent/reconcile/restart/restart-state.ts';
import type { EngineState, Found, Observed } from '../../../host-agent/docker/observed.ts';
import { specHash } from '../../../host-agent/spec/create-body.ts';
import type { Wanted } from '../../../host-agent/desired/wanted.ts';
import type { Owner } from '../../../host-agent/docker/ownership.ts';
import { protocolFields } from '../../../schemas/wire/version.ts';

export const nowMs = Date.parse('2026-01-02T03:04:05Z');
export const id = '0190a000-0000-7000-8000-000000000001' as ContainerId;
export const tenant = 'acme' as TenantId;
export const owner: Owner = { cluster: 'c1', host: 'h1' as HostKey };
export const reference = 'docker.io/longshore/web:1';

/** The whole answer of the first of two partitions, which wants nothing. */
export const syncAnswer = (changes: Partial<SyncAnswer> = {}): SyncAnswer => ({
  v: 1,
  ...protocolFields,
  cluster: 'c1',
  partitions: 2,
  partition: 0,
  epoch: 1,
  revision: 1,
  part: 0,
  parts: 1,
  same: false,
  containers: [],
  hold: [],
  orphan_word: null,
  ...changes,
});

export const container = (changes: Partial<DesiredContainer> = {}): DesiredContainer => ({
  tenant,
  id,
  generation: 3,
  placement: 1,
  desired: 'running',
  name: 'web',
  registry: 'docker.io',
  repository: 'longshore/web',
  tag: '1',
  digest: null,
  pull_policy: 'if_not_present',
  ports: [],
  env: {},
  cpu_millis: 500,
  mem_bytes: 64 * 1024 * 1024,
  secret_refs: [],
  config_files: [],
  ...changes,
});

export const wanted = (
  want: 'running' | 'prepared' | 'stopped' | 'removed',
  changes: Partial<DesiredContainer> = {},
  admitted = true,
): Wanted => {
  const as = want === 'prepared' ? { desired: 'stopped' as const, prepare: true as const } : { desired: want };
  const desired = container({ ...as, ...changes });
  return { want, container: desired, spec: specHash(desired), admitted };
};

export const up: Extract<EngineState, { phase: 'running' }> = {
  phase: 'running',
  run: 'd1:1',
  startedAtMs: nowMs - 60_000,
  health: 'none',
  addresses: [],
};
export const down = (changes: Partial<Extract<EngineState, { phase: 'exited' }>['exit']> = {}): EngineState => ({
  phase: 'exited',
  run: 'd1:1',
  exit: { exitCode: 1, oomKilled: false, upMs: 1000, endedAtMs: nowMs, error: '', ...changes },
});
export const created: EngineState = { phase: 'created' };
export const paused: EngineState = { phase: 'paused', run: 'd1:1' };

export const found = (state: EngineState, changes: Partial<Found> = {}): Found => ({
  dockerId: 'd1',
  tenant,
  id,
  placement: 1,
  spec: specHash(container()),
  imageId: 'sha256:one',
  sandbox: null,
  state,
  ...changes,
});

export const seen = (state: EngineState, changes: Partial<Found> = {}, extra: readonly Found[] = []): Observed => ({
  kind: 'present',
  found: found(state, changes),
  extra,
});

/** The restart state of a container that is known and was seen running. */
export const restartState = (changes: Partial<RestartState> = {}): RestartState => ({
  ...blank,
  generation: 3,
  want: 'running',
  seenUpAtMs: nowMs - 1000,
  ...changes,
});

export const image = { reference, id: 'sha256:one' };
