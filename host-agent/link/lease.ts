/**
 * Decides whether containers may run on this host now. They may not while the control plane has
 * been silent for longer than STOP_ON_DISCONNECT, while a second agent with this host's identity
 * runs, or while the host is removed by force.
 *
 * The decisive facts are kept on disk. The control plane places a silent host's containers
 * elsewhere after the time that the agent announced (ADR 14), so a restart of the agent must not
 * extend it; and an agent that restarts must not start the containers of a host that was removed.
 */
import { EventEmitter } from 'node:events';
import { join } from 'node:path';
import Type from 'typebox';
import { decoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { createNotify } from '../../lib/notify.ts';
import { sleep } from '../../lib/time/backoff.ts';
import { limits } from '../../schemas/limits.ts';
import { createLazyFile, readDecoded } from '../disk/files.ts';
import type { StateDisk } from '../disk/state-disk.ts';
import type { Faults } from '../faults.ts';
import type { MachineTime } from './machine-time.ts';

/** Greatest age of the last contact on an agent's disk. */
const contactWriteMs = 10_000;

const Count = Type.Integer({ minimum: 0 });
const decodeRecord = decoder(
  Type.Object({
    v: Type.Literal(1),
    /** The STOP_ON_DISCONNECT that the agent announced to the control plane; 0 means never. */
    toldMs: Count,
    boot: Type.String(),
    /** The last contact, by the time of the machine in this boot. */
    atMs: Type.Number({ minimum: 0 }),
  }),
);
type ContactRecord = ReturnType<typeof decodeRecord>;

export type Connectivity =
  /** Containers follow their desired state. */
  | 'in_touch'
  /**
   * This process cannot prove yet that containers may run: it starts none and stops none until it
   * knows.
   */
  | 'waiting'
  /** Containers are stopped. */
  | 'cut_off';

export interface Silence {
  /** Milliseconds since the last contact; `undefined` if unknown. */
  readonly silentMs: number | undefined;
  /** Milliseconds since this process started. */
  readonly ranMs: number;
  /** 0 means that silence never stops containers. */
  readonly allowedMs: number;
}

/**
 * An agent that starts without proof of contact gets a moment to make contact, so that a pause of
 * the agent alone stops nothing.
 */
export function connectivityOf({ silentMs, ranMs, allowedMs }: Silence): Connectivity {
  if (allowedMs === 0) return 'in_touch';
  if (silentMs !== undefined && silentMs <= allowedMs) return 'in_touch';
  return ranMs < limits.firstContactMs ? 'waiting' : 'cut_off';
}

/** The shorter of the announced and the current setting: the control plane may rely on either. */
export function strictest(toldMs: number, setMs: number): number {
  return toldMs === 0 || setMs === 0 ? Math.max(toldMs, setMs) : Math.min(toldMs, setMs);
}

interface StopSettings {
  readonly STOP_ON_DISCONNECT: number;
  readonly HEARTBEAT_INTERVAL: number;
  readonly STOP_GRACE: number;
}

/**
 * The time after its last contact at which a live agent with a live engine has stopped every
 * container; `null` if silence stops none. The control plane adds `fenceMarginMs`, which also
 * covers the time that a supervisor takes to start an agent again.
 */
export function stoppedAfterMs(settings: StopSettings, containers: number): number | null {
  const { STOP_ON_DISCONNECT: allowedMs, HEARTBEAT_INTERVAL: lookMs } = settings;
  return allowedMs === 0 ? null : allowedMs + limits.firstContactMs + lookMs + stopAllMs(settings, containers);
}

export const stopAllMs = ({ STOP_GRACE: graceMs }: Pick<StopSettings, 'STOP_GRACE'>, containers: number): number =>
  Math.ceil(containers / limits.concurrentStops) * (graceMs + limits.engineCallMs);

/** The record of the last answer of the control plane. */
export interface Contact {
  /**
   * The control plane has answered. That alone ends no isolation: the control plane may have placed
   * the containers elsewhere meanwhile.
   */
  heard(): void;
  /** Owners have sent the desired set of this host. */
  synced(): void;
  /**
   * The control plane gave a session, and so knows how long this agent lets containers run without
   * contact.
   */
  greeted(): void;
  silence(): Silence;
  flush(): Promise<void>;
}

/** @param setMs STOP_ON_DISCONNECT */
export async function loadContact(
  stateDir: string,
  setMs: number,
  time: MachineTime,
  disk: StateDisk,
  log: Log,
): Promise<Contact> {
  const path = join(stateDir, 'contact.json');
  const known = await readDecoded(path, decodeRecord, log);
  const startedMs = time.nowMs();
  let toldMs = known?.toldMs;
  let atMs = known === undefined ? undefined : provenAtMs(known, time);
  const content = (): string =>
    JSON.stringify({ v: 1, toldMs: toldMs ?? setMs, boot: time.boot ?? '', atMs: atMs ?? 0 } satisfies ContactRecord);
  const allowedMs = () => (toldMs === undefined ? setMs : strictest(toldMs, setMs));
  // An older contact on disk than in memory stops containers sooner, never later.
  const file = createLazyFile(path, content, Math.min(contactWriteMs, setMs / 8), disk);
  const silence = (): Silence => {
    const nowMs = time.nowMs();
    const silentMs = atMs === undefined ? undefined : nowMs - atMs;
    return { silentMs, ranMs: nowMs - startedMs, allowedMs: allowedMs() };
  };
  const synced = (): void => {
    // Silence stops nothing, and the time of the machine is a call of the system.
    if (allowedMs() === 0) return;
    atMs = time.nowMs();
    file.touch();
  };
  return {
    heard: () => {
      if (allowedMs() > 0 && connectivityOf(silence()) === 'in_touch') synced();
    },
    synced,
    greeted: () => {
      if (toldMs !== undefined && toldMs !== setMs) file.touch();
      toldMs = setMs;
    },
    silence,
    flush: () => file.flush(),
  };
}

/** A contact from an earlier boot proves nothing: the machine may have been off for any time. */
const provenAtMs = ({ boot, atMs }: ContactRecord, time: MachineTime): number | undefined =>
  boot === time.boot && atMs <= time.nowMs() ? atMs : undefined;

const decodeFence = decoder(Type.Object({ v: Type.Literal(1), fenced: Type.Boolean() }));

/** The record that an operator has removed this host by force. */
export interface Fence {
  isUp(): boolean;
  /**
   * The control plane reports that this host was removed.
   * @returns `true` if the fence was not up before
   */
  raise(): boolean;
  /** The control plane accepts this host again: it gave a session. */
  greeted(): void;
  /** Every owner has answered. @returns `true` if that lifts the fence */
  synced(): boolean;
  flush(): Promise<void>;
}

export async function loadFence(stateDir: string, disk: StateDisk, log: Log): Promise<Fence> {
  const path = join(stateDir, 'fence.json');
  let isUp = (await readDecoded(path, decodeFence, log))?.fenced ?? false;
  let isGreeted = false;
  const file = createLazyFile(path, () => JSON.stringify({ v: 1, fenced: isUp }), 0, disk);
  const set = (next: boolean): void => {
    isUp = next;
    file.touch();
  };
  return {
    isUp: () => isUp,
    raise: () => {
      isGreeted = false;
      if (isUp) return false;
      set(true);
      return true;
    },
    greeted: () => {
      isGreeted = true;
    },
    // The containers on disk may have been placed elsewhere meanwhile: only a fresh set may start.
    synced: () => {
      if (!isUp || !isGreeted) return false;
      set(false);
      return true;
    },
    flush: () => file.flush(),
  };
}

/**
 * - `run`: containers follow their desired state.
 * - `wait`: it is not known yet whether they may; the agent starts, stops and removes none.
 * - `stop`: none may run.
 */
export type Verdict = 'run' | 'wait' | 'stop';

interface LeaseEvents {
  verdict: [verdict: Verdict];
  /** An operator removed this host by force. */
  fenced: [];
}

export interface Lease {
  readonly events: EventEmitter<LeaseEvents>;
  verdict(): Verdict;
  /** The control plane has answered. */
  heard(): void;
  /** The control plane reports that this host was removed by force. */
  fenced(): void;
  /** @param isSuperseded another agent with this identity started later and is at work */
  superseded(isSuperseded: boolean): void;
  /** The control plane gave a session. */
  greeted(): void;
  /** Owners have sent the desired set, so it is known what moved while this host was cut off. */
  synced(): void;
  /** Every partition has answered. */
  settled(): void;
  /** Watches the silence of the control plane. */
  run(signal: AbortSignal): Promise<void>;
}

interface LeaseParts {
  readonly contact: Contact;
  readonly fence: Fence;
  readonly faults: Faults;
  /** Milliseconds between two checks of the silence. */
  readonly lookMs: number;
  readonly log: Log;
}

export function createLease({ contact, fence, faults, lookMs, log }: LeaseParts): Lease {
  const events = new EventEmitter<LeaseEvents>();
  const synced = createNotify();
  let connectivity: Connectivity = 'in_touch';
  let isSuperseded = false;

  const verdictNow = (): Verdict => {
    if (fence.isUp()) return 'stop';
    if (connectivity === 'waiting') return 'wait';
    return connectivity === 'cut_off' || isSuperseded ? 'stop' : 'run';
  };
  let verdict = verdictNow();
  const judge = (): void => {
    const next = verdictNow();
    if (next === verdict) return;
    verdict = next;
    events.emit('verdict', verdict);
  };

  const stand = (next: Connectivity): void => {
    if (next === connectivity) return;
    const { silentMs = null } = contact.silence();
    if (next === 'waiting') log.warn('control_plane_awaited', { silentMs });
    else if (next === 'cut_off') log.warn('host_isolated', { silentMs });
    else log.warn('isolation_ended', { was: connectivity });
    connectivity = next;
    judge();
  };

  return {
    events,
    verdict: () => verdict,
    heard: contact.heard,
    fenced: () => {
      if (!fence.raise()) return;
      log.error('host_fenced', { why: 'an operator removed this host by force: the agent stops its containers' });
      judge();
      // The agent asks until it gets a session; the control plane then accepts this host again.
      events.emit('fenced');
    },
    superseded: (next) => {
      if (next) faults.raise('cloned_state', clonedState);
      else faults.clear('cloned_state');
      isSuperseded = next;
      judge();
    },
    greeted: () => {
      fence.greeted();
      contact.greeted();
    },
    synced: () => {
      contact.synced();
      synced.notify();
    },
    settled: () => {
      if (!fence.synced()) return;
      log.warn('fence_lifted');
      judge();
    },
    run: async (signal) => {
      while (!signal.aborted) {
        stand(connectivityOf(contact.silence()));
        // One heartbeat: no later than the control plane assumes. While containers may not run, a
        // sync ends the pause at once.
        await (connectivity === 'in_touch' ? sleep(lookMs, signal) : synced.wait(lookMs, signal));
      }
    },
  };
}

const clonedState =
  'a second agent with the identity of this host is running: STATE_DIR was copied. The containers on this machine are ' +
  'stopped and none is removed; enrol this machine as a host of its own';
