/**
 * When the control plane last answered, and what that means for containers where
 * STOP_ON_DISCONNECT is set. Kept on disk: the control plane places a silent host's containers
 * elsewhere after the time that the agent announced (ADR 14), so a restart of the agent must not
 * extend it.
 */
import { join } from 'node:path';
import Type from 'typebox';
import { decoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { limits } from '../../schemas/limits.ts';
import { createLazyFile, readDecoded } from '../disk/files.ts';
import type { MachineTime } from './machine-time.ts';
import type { StateDisk } from '../disk/state-disk.ts';

const Count = Type.Integer({ minimum: 0 });
const decodeRecord = decoder(
  Type.Object({
    v: Type.Literal(1),
    /** The STOP_ON_DISCONNECT that the agent announced to the control plane; 0: never. */
    toldMs: Count,
    boot: Type.String(),
    /** The last contact, by the time of the machine in this boot. */
    atMs: Type.Number({ minimum: 0 }),
  }),
);
type ContactRecord = ReturnType<typeof decodeRecord>;

export type Footing =
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
  /** Time since the last contact; undefined: unknown. */
  readonly silentMs: number | undefined;
  /** How long this process has run. */
  readonly ranMs: number;
  /** 0: silence never stops containers. */
  readonly allowedMs: number;
}

/**
 * An agent that starts without proof of contact gets a moment to make contact, so that a pause of
 * the agent alone stops nothing.
 */
export function footingOf({ silentMs, ranMs, allowedMs }: Silence): Footing {
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
  readonly BEAT_INTERVAL: number;
  readonly STOP_GRACE: number;
}

/**
 * How long after its last contact a live agent with a live engine has stopped every container;
 * null: silence stops none. The control plane adds `fenceMarginMs`, which also covers the time that
 * a supervisor takes to start an agent again.
 */
export function stoppedAfterMs(settings: StopSettings, containers: number): number | null {
  const { STOP_ON_DISCONNECT: allowedMs, BEAT_INTERVAL: lookMs } = settings;
  return allowedMs === 0 ? null : allowedMs + limits.firstContactMs + lookMs + stopAllMs(settings, containers);
}

export const stopAllMs = ({ STOP_GRACE: graceMs }: Pick<StopSettings, 'STOP_GRACE'>, containers: number): number =>
  Math.ceil(containers / limits.concurrentStops) * (graceMs + limits.engineCallMs);

export interface Contact {
  /**
   * The control plane has answered. That alone ends no isolation: the control plane may have placed
   * the containers elsewhere meanwhile.
   */
  heard(): void;
  /** Owners have said what this host should run. */
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
  const file = createLazyFile(path, content, Math.min(limits.contactWriteMs, setMs / 8), disk);
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
      if (allowedMs() > 0 && footingOf(silence()) === 'in_touch') synced();
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
