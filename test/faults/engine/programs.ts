/**
 * The programs in the images of a run: they write numbered lines, crash, or end by themselves. Logs
 * and statuses are judged by what they did.
 */
import { setMaxListeners } from 'node:events';
import { sleep } from '../../../lib/time/backoff.ts';
import { labels as ours } from '../../../host-agent/docker/ownership.ts';
import type { Random } from '../../actors/support/random.ts';
import type { EngineModel, SimulatedContainer } from '../../support/engine/model.ts';
import { crashingTag, endingOf, type Ending } from '../load/tenants.ts';

/** All runs of one of the engine's containers write one series of lines, numbered from 1. */
export interface Series {
  /** Longshore's id. */
  readonly container: string;
  /** Begins each of its lines; the number follows. */
  readonly prefix: string;
  lines: number;
  /** The time of each line when it was written, by the clock of this process. */
  readonly writtenMs: number[];
  /** Removed by hand, together with the lines that the agent had not read. */
  isRemoved: boolean;
}

/** From a start of one of the engine's containers to its end. */
export interface Run {
  readonly tenant: string;
  readonly container: string;
  readonly tag: string;
  /** By the engine's clock. */
  readonly startedMs: number;
  /** True if the agent asked for its stop, also in a call that failed. */
  wasAsked: boolean;
  /** `undefined` while it runs. */
  end: RunEnd | undefined;
}

export interface RunEnd {
  /** By the engine's clock. */
  readonly atMs: number;
  readonly exitCode: number;
  /** Cause of the end: the program itself, a person beside the agent, or a call of the agent. */
  readonly by: 'itself' | 'hand' | 'agent';
}

export interface Programs {
  readonly series: readonly Series[];
  /** In the order of their starts. */
  readonly runs: readonly Run[];
  /** The agent asks a container to stop. One that hears it writes what it has left. */
  asked(made: SimulatedContainer, hears: boolean): void;
  /** The program ends by itself. */
  end(made: SimulatedContainer, exitCode: number): void;
  /** Ends and removes a container, as a person does by hand. */
  remove(made: SimulatedContainer): void;
  /** Turns lines between their starts and their ends on or off. */
  setTalking(isOn: boolean): void;
  stop(): void;
}

const crashMaxMs = 300;
const talkEveryMs = 100;
/** A running container writes once in so many of these. */
const talkOnceIn = 10;
const burstMax = 6;

export function startPrograms(
  model: EngineModel,
  tagOf: (made: SimulatedContainer) => string,
  random: Random,
): Programs {
  const series = new Map<string, Series>();
  const runs: Run[] = [];
  const running = new Map<string, Run>();
  const endedBy = new Map<string, RunEnd['by']>();
  const stopping = new AbortController();
  setMaxListeners(0, stopping.signal);
  let isTalking = true;

  const write = (made: SimulatedContainer, count: number): void => {
    if (made.state.status !== 'running') return;
    const known = series.get(made.id);
    const own = known ?? {
      container: made.labels[ours.container] ?? '',
      prefix: made.id.slice(0, 12),
      lines: 0,
      writtenMs: [],
      isRemoved: false,
    };
    series.set(made.id, own);
    for (let more = 0; more < count; more++) {
      model.write(made, `${own.prefix} ${(own.lines += 1)}`);
      own.writtenMs.push(performance.now());
    }
  };

  const end = (made: SimulatedContainer, exitCode: number, by: 'itself' | 'hand'): void => {
    if (made.state.status !== 'running') return;
    if (by === 'itself') write(made, 1 + random.below(burstMax));
    endedBy.set(made.id, by);
    model.exit(made, exitCode);
  };

  const endSoon = async (made: SimulatedContainer, { afterMs, exitCode }: Ending): Promise<void> => {
    const run = running.get(made.id);
    await sleep(afterMs, stopping.signal);
    if (!stopping.signal.aborted && running.get(made.id) === run) end(made, exitCode, 'itself');
  };

  const endingAt = (tag: string): Ending | undefined => {
    if (tag === crashingTag) return { afterMs: random.below(crashMaxMs), exitCode: 1 };
    return endingOf(tag);
  };

  const started = (made: SimulatedContainer): void => {
    const tag = tagOf(made);
    const run: Run = {
      tenant: made.labels[ours.tenant] ?? '',
      container: made.labels[ours.container] ?? '',
      tag,
      startedMs: made.state.status === 'created' ? NaN : Date.parse(made.state.startedAt),
      wasAsked: false,
      end: undefined,
    };
    runs.push(run);
    running.set(made.id, run);
    write(made, 1);
    const ending = endingAt(tag);
    if (ending !== undefined) void endSoon(made, ending);
  };

  const ended = (made: SimulatedContainer): void => {
    const run = running.get(made.id);
    if (run === undefined || made.state.status !== 'exited') return;
    const { exitCode, finishedAt } = made.state;
    run.end = { atMs: Date.parse(finishedAt), exitCode, by: endedBy.get(made.id) ?? 'agent' };
    running.delete(made.id);
    endedBy.delete(made.id);
  };

  const unheard = model.onEvent({}, ['container'], (line) => {
    const { Action: action, Actor: actor } = JSON.parse(line) as { Action: string; Actor: { ID: string } };
    const made = model.find(actor.ID);
    if (made === undefined || !(ours.container in made.labels)) return;
    if (action === 'start') started(made);
    if (action === 'die') ended(made);
  });
  const talking = setInterval(() => {
    if (!isTalking) return;
    for (const made of model.running()) if (random.once(talkOnceIn)) write(made, 1 + random.below(burstMax));
  }, talkEveryMs);

  return {
    get series() {
      return [...series.values()];
    },
    runs,
    asked: (made, hears) => {
      const run = running.get(made.id);
      if (run !== undefined) run.wasAsked = true;
      if (hears) write(made, 1);
    },
    end: (made, exitCode) => end(made, exitCode, 'itself'),
    remove: (made) => {
      end(made, 137, 'hand');
      const own = series.get(made.id);
      if (own !== undefined) own.isRemoved = true;
      model.remove(made);
    },
    setTalking: (isOn) => {
      isTalking = isOn;
    },
    stop: () => {
      clearInterval(talking);
      stopping.abort();
      unheard();
    },
  };
}
