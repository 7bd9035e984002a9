/** Reports the observation of a container, or that the engine does not answer. */
import type { Clock } from '../../lib/time/clock.ts';
import type { ContainerId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';
import type { Observed as ReportedObserved, Reporter } from '../link/reporter.ts';
import type { Workload } from '../desired/workload.ts';
import type { Found, Observed } from '../docker/observed.ts';
import type { TenantNetwork } from '../network/tenant-network.ts';
import type { Declared, Wanted } from '../desired/wanted.ts';
import { describe, describeAway } from './describe.ts';
import type { RestartState, UpdateState } from './restart/restart-state.ts';

/** A container: its goal on this host, and its last observation. */
export interface Seen {
  readonly id: ContainerId;
  readonly wanted: Wanted;
  readonly observed: Observed;
}

export interface Reports {
  looked(seen: Seen, restart: RestartState): void;
  /** The engine has not answered since then. */
  away(ids: Iterable<ContainerId>, sinceMs: number): void;
}

export interface ReportsParts {
  readonly reporter: Pick<Reporter, 'set' | 'all' | 'forget'>;
  readonly workload: Pick<Workload, 'wanted'>;
  /** `undefined` if this host has no tenant network. */
  readonly tenantNetwork: Pick<TenantNetwork, 'seen'> | undefined;
  readonly clock: Pick<Clock, 'nowMs'>;
  /** A clock for waits, which never steps. */
  readonly steadyMs: () => number;
}

type Told = Pick<ReportedObserved, 'description' | 'update'>;

/** The phase of an update in the form of a report. */
export const updateTold = ({ since, phase, why, unmoved }: UpdateState): NonNullable<Told['update']> => ({
  since,
  phase,
  reason: why?.reason ?? null,
  message: unmoved === true ? unmovedText : (why?.message.slice(0, limits.observationMessageChars) ?? null),
  ...(unmoved === undefined ? {} : { unmoved }),
});

const unmovedText = 'the tag names the image that runs already: nothing was replaced';

/** The update makes no progress meanwhile. */
function updateWhileAway({ update }: Declared, last: Told['update']): Pick<Told, 'update'> {
  if (update === undefined) return {};
  const { since } = update;
  return { update: last?.since === since ? last : updateTold({ since, phase: 'preparing', why: null }) };
}

export function createReports({ reporter, workload, tenantNetwork, clock, steadyMs }: ReportsParts): Reports {
  /**
   * Converts the end of a wait to wall-clock time. In whole seconds, so that small corrections of
   * the clock cause no report.
   */
  const onWall = (restart: RestartState): RestartState => {
    const aheadMs = Math.round((clock.nowMs() - steadyMs()) / 1000) * 1000;
    if (restart.attempt.phase !== 'waiting' || aheadMs === 0) return restart;
    return { ...restart, attempt: { phase: 'waiting', untilMs: restart.attempt.untilMs + aheadMs } };
  };

  const report = (id: ContainerId, { want, container }: Declared, told: Told): void => {
    const { tenant, generation, placement } = container;
    const prepared = want === 'prepared' ? { prepared: placement } : {};
    reporter.set({ tenant, id, generation, ...prepared, ...told });
  };

  return {
    looked: ({ id, wanted, observed }, restart) => {
      const description = describe(wanted, observed, onWall(restart));
      if (description === undefined || !('container' in wanted)) {
        // Its owner does not know it now, as after a restore. Its next report counts as news.
        reporter.forget(id);
        return;
      }
      const { volumes = [], image, isNamed }: Partial<Found> = observed.kind === 'present' ? observed.found : {};
      const network = tenantNetwork?.seen(id);
      const isBefore = network?.state === 'ready' && isNamed === false;
      const seen = {
        ...description.observation,
        ...(volumes.length === 0 ? {} : { volumes: [...volumes] }),
        ...(image === undefined ? {} : { image }),
        ...(network === undefined ? {} : { network: isBefore ? { ...network, made_before: true as const } : network }),
      };
      report(id, wanted, {
        description: { ...description, observation: seen },
        ...(restart.update === null ? {} : { update: updateTold(restart.update) }),
      });
    },
    away: (ids, sinceMs) => {
      const last = new Map([...reporter.all()].map((observed) => [observed.id, observed]));
      for (const id of ids) {
        const wanted = workload.wanted(id);
        if (!('container' in wanted)) continue;
        const before = last.get(id);
        const description = describeAway(before?.description, sinceMs);
        report(id, wanted, { description, ...updateWhileAway(wanted, before?.update) });
      }
    },
  };
}
