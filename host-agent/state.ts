/** The agent's state: kept in its state folder, and read at its start. */
import { randomBytes } from 'node:crypto';
import type { Clock } from '../lib/time/clock.ts';
import type { Log } from '../lib/log.ts';
import { loadContact, loadFence, type Contact, type Fence } from './link/lease.ts';
import type { MachineTime } from './link/machine-time.ts';
import { loadSessionNumber, type SessionNumber } from './link/session.ts';
import type { StateDisk } from './disk/state-disk.ts';
import { loadImageAccess, type ImageAccess } from './images/access.ts';
import { loadCursors, type Cursors } from './logs/cursors.ts';
import { openSpool, type Spool } from './logs/spool.ts';
import type { Metrics } from './metrics.ts';
import { loadRestartStore, type RestartStore } from './reconcile/restart/restart-store.ts';
import { openSealedCache, type SealedCache } from './secrets/sealed-cache.ts';
import { loadSealKey, type SealKey } from './secrets/seal-key.ts';
import { loadExecRecord, type ExecRecord } from './sessions/exec-record.ts';
import type { AgentSettings } from './settings.ts';
import { loadUsageStore, type UsageStore } from './usage/store.ts';
import { loadVolumeRecord, type VolumeRecord } from './volumes/record.ts';
import { createDesiredStore, type DesiredStore } from './desired/store.ts';
import type { DesiredSet } from './desired/desired-set.ts';
import { TenantMembers } from './desired/members.ts';

export interface State {
  readonly sessions: SessionNumber;
  readonly store: DesiredStore;
  /** As it was at the last end of the agent. */
  readonly desired: DesiredSet;
  readonly contact: Contact;
  readonly fence: Fence;
  readonly restartStore: RestartStore;
  readonly cursors: Cursors;
  readonly spool: Spool;
  readonly sealKey: SealKey;
  readonly sealedCache: SealedCache;
  readonly imageAccess: ImageAccess;
  readonly usage: UsageStore;
  readonly execs: ExecRecord;
  readonly volumes: VolumeRecord;
  readonly members: TenantMembers;
  /** Writes the pending changes of all state files here. */
  flush(): Promise<void>;
}

export interface StateParts {
  readonly settings: AgentSettings;
  readonly cluster: string;
  readonly disk: StateDisk;
  readonly clock: Clock;
  readonly steadyMs: () => number;
  readonly machineTime: MachineTime;
  readonly metrics: Pick<Metrics, 'logDropped' | 'usageDropped'>;
  readonly log: Log;
}

export async function loadState(parts: StateParts): Promise<State> {
  const { settings, disk, clock, steadyMs, log } = parts;
  const { STATE_DIR: stateDir, STOP_ON_DISCONNECT, RESTART_BACKOFF_MAX: maxWaitMs } = settings;
  const wallMs = (): number => clock.nowMs();
  const sessions = await loadSessionNumber(stateDir, disk, log);
  const store = createDesiredStore(stateDir, parts.cluster, disk, log);
  const desired = await store.load();
  const contact = await loadContact(stateDir, STOP_ON_DISCONNECT, parts.machineTime, disk, log);
  const fence = await loadFence(stateDir, disk, log);
  const cursors = await loadCursors(stateDir, disk, log);
  const spool = await openSpool(stateDir, wallMs, parts.metrics.logDropped, log);
  const restartStore = await loadRestartStore(stateDir, { wallMs, steadyMs, maxWaitMs }, disk, log);
  const sealKey = await loadSealKey(stateDir, log);
  const sealedCache = await openSealedCache(stateDir, log);
  const imageAccess = await loadImageAccess(stateDir, disk, log);
  const usage = await loadUsageStore({
    stateDir,
    nowMs: wallMs,
    machineTime: parts.machineTime,
    newSource: () => randomBytes(16).toString('hex'),
    onDropped: parts.metrics.usageDropped,
    disk,
    log,
  });
  const execs = await loadExecRecord(stateDir, disk, log);
  const volumes = await loadVolumeRecord(stateDir, disk, log);
  const members = await TenantMembers.load(stateDir, parts.cluster, disk, log);
  return {
    execs,
    volumes,
    members,
    sessions,
    store,
    desired,
    contact,
    fence,
    restartStore,
    cursors,
    spool,
    sealKey,
    sealedCache,
    imageAccess,
    usage,
    flush: async () => {
      await Promise.all(
        [sessions, store, fence, contact, imageAccess, usage, execs, volumes, members].map((kept) => kept.flush()),
      );
    },
  };
}
