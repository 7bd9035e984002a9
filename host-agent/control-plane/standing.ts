/**
 * Whether containers may run on this host now. Not while the control plane has been silent for
 * longer than STOP_ON_DISCONNECT, while a second agent with this host's identity runs, or while
 * the host is removed by force.
 */
import { sleep } from '../../lib/time/backoff.ts';
import type { Log } from '../../lib/log.ts';
import { createNotify } from '../../lib/notify.ts';
import type { Faults } from '../faults.ts';
import type { Reconciler } from '../reconcile/reconciler.ts';
import { footingOf, type Contact, type Footing } from './contact.ts';
import type { Fence } from './fence.ts';

export interface Standing {
  /** The control plane says that this host was removed by force. */
  fenced(): void;
  /** Whether another agent with this identity started later and is at work. */
  superseded(isSuperseded: boolean): void;
  /** The control plane gave a session. */
  greeted(): void;
  /** Owners have said what this host should run. */
  synced(): void;
  /** Every partition has answered. */
  settled(): void;
  /** Watches the silence of the control plane. */
  run(signal: AbortSignal): Promise<void>;
}

export interface StandingParts {
  readonly contact: Contact;
  readonly fence: Fence;
  readonly containers: Pick<Reconciler, 'setFenced' | 'setIsolated' | 'setWaiting'>;
  readonly faults: Faults;
  /** How often to look at the silence. */
  readonly lookMs: number;
  readonly renewSession: () => void;
  readonly log: Log;
}

export function createStanding(parts: StandingParts): Standing {
  const { contact, fence, containers, faults, log } = parts;
  const heard = createNotify();
  let footing: Footing = 'in_touch';
  let isSuperseded = false;
  containers.setFenced(fence.isUp());

  const isolate = (): void => containers.setIsolated(footing === 'cut_off' || isSuperseded);
  const stand = (next: Footing): void => {
    if (next === footing) return;
    const { silentMs = null } = contact.silence();
    if (next === 'waiting') log.warn('contact_awaited', { silentMs });
    else if (next === 'cut_off') log.warn('isolated', { silentMs });
    else log.warn('isolation_ended', { was: footing });
    footing = next;
    isolate();
    containers.setWaiting(next === 'waiting');
  };

  return {
    fenced: () => {
      if (!fence.raise()) return;
      log.error('fenced', { why: 'an operator removed this host by force: the agent stops its containers' });
      containers.setFenced(true);
      // The agent asks until it gets a session; the control plane then accepts this host again.
      parts.renewSession();
    },
    superseded: (next) => {
      if (next) faults.raise('cloned_state', clonedState);
      else faults.clear('cloned_state');
      isSuperseded = next;
      isolate();
    },
    greeted: () => {
      fence.greeted();
      contact.greeted();
    },
    synced: () => {
      contact.synced();
      heard.notify();
    },
    settled: () => {
      if (!fence.synced()) return;
      log.warn('fence_lifted');
      containers.setFenced(false);
    },
    run: async (signal) => {
      while (!signal.aborted) {
        stand(footingOf(contact.silence()));
        // One heartbeat: no later than the control plane assumes. While containers may not run, a
        // sync ends the pause at once.
        await (footing === 'in_touch' ? sleep(parts.lookMs, signal) : heard.wait(parts.lookMs, signal));
      }
    },
  };
}

const clonedState =
  'a second agent with the identity of this host is running: STATE_DIR was copied. The containers on this machine are ' +
  'stopped and none is removed; enrol this machine as a host of its own';
