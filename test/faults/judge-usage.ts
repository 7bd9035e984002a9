/**
 * Judges the usage of a run: whatever was killed, cut off or away, each container is said to have
 * run as long as the engine ran it, each second once.
 */
import Type from 'typebox';
import { decoder } from '../../lib/decode.ts';
import { UsageView } from '../../schemas/api/usage/usage.ts';
import { settledFaults, type Ask } from './asking.ts';
import { grouped } from './check/items.ts';
import type { Run } from './engine/programs.ts';
import type { Judgement } from './judge.ts';
import { compute } from './load/requests.ts';
import { overlaps, type Span } from './load/silence.ts';
import { allTenants } from './load/tenants.ts';
import type { World } from './world/world.ts';

/** An agent reports what goes on this late at most, with the settings of a run. */
const lateMs = 10_000;
/** An agent counts up to when it last saw a run: on a busy machine that is read late. */
const toleranceMs = 3_000;
/** Clocks step by hours, and the month may end. */
const aroundMs = 24 * 3_600_000;

const decodePage = decoder(
  Type.Object({ data: UsageView, next_cursor: Type.Optional(Type.Union([Type.String(), Type.Null()])) }),
);

async function usedBy(ask: Ask): Promise<Map<string, number>> {
  const used = new Map<string, number>();
  const [from, to] = [-aroundMs, aroundMs].map((ms) => new Date(Date.now() + ms).toISOString());
  for (let cursor = ''; ;) {
    const page = await ask(`${compute}/usage?from=${from}&to=${to}${cursor}`, decodePage);
    for (const { id, container_seconds: seconds } of page.data.containers) used.set(id, seconds * 1000);
    if (page.next_cursor == null) return used;
    cursor = `&cursor=${encodeURIComponent(page.next_cursor)}`;
  }
}

/**
 * Faults in the usage of some containers.
 * @param usedMs by container
 * @param nowMs when it was asked for, by the engine's clock
 * @param forgotten by the same clock: of what ran then, some may be missing
 * @param undated by the same clock: what ran then is not judged, because the engine of a run has
 *   another clock than the agent, as no host has
 */
export function usageFaults(
  runs: readonly Run[],
  usedMs: ReadonlyMap<string, number>,
  nowMs: number,
  forgotten: readonly Span[] = [],
  undated: readonly Span[] = [],
): string[] {
  return [...grouped(runs, ({ container }) => container)].flatMap(([id, its]) => {
    if (its.some(({ startedMs, end }) => overlaps({ fromMs: startedMs, toMs: end?.atMs ?? nowMs }, undated))) return [];
    const used = usedMs.get(id) ?? 0;
    const sumOf = (of: (run: Run) => number): number => its.reduce((sum, run) => sum + of(run), 0);
    const most = sumOf(({ startedMs, end }) => (end?.atMs ?? nowMs) - startedMs + toleranceMs);
    const least = sumOf(({ startedMs, end }) => {
      // The agent may not have seen the end of what was removed by hand.
      if (end?.by === 'hand' || overlaps({ fromMs: startedMs, toMs: end?.atMs ?? nowMs }, forgotten)) return 0;
      return Math.max(0, (end?.atMs ?? nowMs - lateMs) - startedMs - toleranceMs);
    });
    if (used >= least && used <= most) return [];
    return [`${id} is said to have run ${used} ms, and ran from ${least} to ${most} ms in ${its.length} runs`];
  });
}

/** Once all faults are healed. */
export async function judgeUsage(
  world: World,
  forgotten: readonly Span[],
  undated: readonly Span[],
): Promise<Judgement> {
  const offsetMs = Date.now() - performance.now();
  const byEngine = (spans: readonly Span[]): Span[] =>
    spans.map(({ fromMs, toMs }) => ({ fromMs: fromMs + offsetMs, toMs: toMs + offsetMs }));
  const faults = await settledFaults(world, async (askerOf) => {
    const found: string[] = [];
    for (const tenant of allTenants) {
      const used = await usedBy(await askerOf(tenant));
      const its = world.engine.programs.runs.filter((run) => run.tenant === tenant);
      found.push(
        ...usageFaults(its, used, Date.now(), byEngine(forgotten), byEngine(undated)).map(
          (text) => `${tenant} ${text}`,
        ),
      );
    }
    return found;
  });
  return { what: 'usage says how long each container ran', faults };
}
