/** The closing table of a run over several seeds, for a terminal or as Markdown. */
import type { Trial } from './trial.ts';

interface Row {
  readonly fault: string;
  readonly count: number;
  readonly all: Times;
  /** Times without JetStream. */
  readonly jetstream: Times;
  /** Times with JetStream, but without an answer. */
  readonly ours: Times;
}

interface Times {
  readonly p50Ms: number;
  readonly maxMs: number;
}

function timesOf(ms: readonly number[]): Times {
  const sorted = ms.toSorted((left, right) => left - right);
  return { p50Ms: sorted[Math.floor((sorted.length - 1) / 2)] ?? NaN, maxMs: sorted.at(-1) ?? NaN };
}

export function rowsOf(trials: readonly Trial[]): Row[] {
  const injections = trials.flatMap((trial) => trial.injections);
  return [...new Set(injections.map(({ kind }) => kind))].map((fault) => {
    const some = injections.filter(({ kind }) => kind === fault);
    return {
      fault,
      count: some.length,
      all: timesOf(some.map(({ unavailableMs }) => unavailableMs)),
      jetstream: timesOf(some.map(({ jetstreamMs }) => jetstreamMs)),
      ours: timesOf(some.map(({ unavailableMs, jetstreamMs }) => unavailableMs - jetstreamMs)),
    };
  });
}

export interface Totals {
  readonly seeds: readonly number[];
  readonly faults: number;
  readonly operations: number;
  readonly losses: number;
  readonly doubles: number;
  readonly failedJudgements: number;
}

export const totalsOf = (trials: readonly Trial[]): Totals => {
  const sum = (of: (trial: Trial) => number): number => trials.reduce((total, trial) => total + of(trial), 0);
  return {
    seeds: trials.map(({ seed }) => seed),
    faults: sum(({ injections }) => injections.length),
    operations: sum(({ operations }) => operations),
    losses: sum(({ losses }) => losses),
    doubles: sum(({ doubles }) => doubles),
    failedJudgements: sum(({ judgements }) => judgements.filter(({ faults }) => faults.length > 0).length),
  };
};

const seconds = (ms: number): string => (ms / 1000).toFixed(2);

export function table(trials: readonly Trial[], isMarkdown: boolean): string[] {
  const rows = rowsOf(trials).toSorted((left, right) => (left.fault < right.fault ? -1 : 1));
  const cells = [
    ['fault', 'injected', 'unavailable p50, s', 'max, s', 'JetStream p50', 'max', 'rest p50', 'max'],
    ...rows.map(({ fault, count, all, jetstream, ours }) => [
      fault,
      String(count),
      ...[all, jetstream, ours].flatMap(({ p50Ms, maxMs }) => [seconds(p50Ms), seconds(maxMs)]),
    ]),
  ];
  const widths = cells[0]!.map((_, column) => Math.max(...cells.map((row) => row[column]?.length ?? 0)));
  const pad = (row: readonly string[]): string[] =>
    row.map((cell, column) => (column === 0 ? cell.padEnd(widths[column]!) : cell.padStart(widths[column]!)));
  const { seeds, faults, operations, losses, doubles, failedJudgements } = totalsOf(trials);
  const summary =
    `Seeds ${seeds.join(', ')}: ${faults} faults injected, ${operations} operations checked, ${losses} losses, ` +
    `${doubles} done twice, ${failedJudgements} judgements failed.`;
  if (!isMarkdown) return [...cells.map((row) => pad(row).join('  ')), summary];
  const [head, ...body] = cells.map((row) => `| ${pad(row).join(' | ')} |`);
  const rule = `| ${widths.map((width, column) => (column === 0 ? '-'.repeat(width) : `${'-'.repeat(width - 1)}:`)).join(' | ')} |`;
  return [head!, rule, ...body, '', summary];
}
