/** Times without an answer, and whose they are. Pure. */

export interface Span {
  readonly fromMs: number;
  readonly toMs: number;
}

export const lengthMs = ({ fromMs, toMs }: Span): number => toMs - fromMs;

export const overlaps = (one: Span, others: readonly Span[]): boolean =>
  others.some((other) => one.fromMs <= other.toMs && one.toMs >= other.fromMs);

/** The parts of `span` between two answers, and before the first and after the last. */
export function silences(answersMs: readonly number[], span: Span): Span[] {
  const inside = answersMs.filter((ms) => ms >= span.fromMs && ms <= span.toMs);
  const edges = [span.fromMs, ...inside.toSorted((left, right) => left - right), span.toMs];
  return edges.slice(1).map((toMs, index) => ({ fromMs: edges[index] ?? toMs, toMs }));
}

/** Length of the part of `span` that lies in at least one of the others. */
export function coveredMs(span: Span, others: readonly Span[]): number {
  let coveredToMs = span.fromMs;
  let sumMs = 0;
  for (const { fromMs, toMs } of others.toSorted((left, right) => left.fromMs - right.fromMs)) {
    const endMs = Math.min(toMs, span.toMs);
    sumMs += Math.max(0, endMs - Math.max(fromMs, coveredToMs));
    coveredToMs = Math.max(coveredToMs, endMs);
  }
  return sumMs;
}
