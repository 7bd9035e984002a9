/**
 * Metrics as rows of a table: name, labels, help, and what to watch for stand in one place, and
 * docs/metrics.md is written from it. A row is recorded by a function, or read at each scrape.
 *
 * A series counts in plain numbers, and prom-client has them at a scrape: it looks the labels up at
 * each `inc` and the bound at each `observe`, by a text that it makes of the number, which took a
 * fortieth of the gateway's time under creates.
 */
import { Counter, Gauge, Histogram, type Registry } from 'prom-client';

/** Of the metrics that every program has. */
export const commonPrefix = 'longshore_';

type Value = string | number;

/** A label; `values` are all that it can have, and empty if they are not known beforehand. */
export interface Label<V extends Value = Value> {
  readonly name: string;
  readonly values: readonly V[];
}

export const label = <const V extends Value = string>(name: string, ...values: readonly V[]): Label<V> => ({
  name,
  values,
});

type Labels = readonly Label[];
type ValuesOf<L extends Labels> = { [Index in keyof L]: L[Index] extends Label<infer V> ? V : never };

interface Row<L extends Labels> {
  /** Without the prefix of its table. */
  readonly name: string;
  readonly help: string;
  /** For docs/metrics.md: which values are a sign of what. */
  readonly watch: string;
  readonly labels: L;
}

/** The effect of a recorded number on its series. */
type Kind = 'counter' | 'gauge' | 'upDownCounter' | 'histogram';

export interface Recorded<K extends Kind = Kind, L extends Labels = Labels> extends Row<L> {
  readonly kind: K;
  readonly buckets: readonly number[];
}

/** One number, `undefined` for no sample, or one for each combination of the labels' values. */
type Reading<L extends Labels> = L extends readonly []
  ? number | undefined
  : readonly (readonly [...ValuesOf<L>, number])[];

export interface Read<From, L extends Labels = Labels> extends Row<L> {
  readonly kind: 'counter' | 'gauge';
  readonly read: (from: From) => number | undefined | readonly (readonly Value[])[];
}

interface About<L extends Labels> {
  readonly help: string;
  readonly watch?: string;
  readonly labels?: readonly [...L];
}

const rowOf = <L extends Labels>(name: string, { help, watch = '', labels }: About<L>): Row<L> => ({
  name,
  help,
  watch,
  labels: (labels ?? []) as unknown as L,
});

const recorded =
  <K extends Kind>(kind: K) =>
  <const L extends Labels = []>(name: string, about: About<L>): Recorded<K, L> => ({
    ...rowOf(name, about),
    kind,
    buckets: [],
  });

/** Counts events: `(...labels, by = 1)`. */
export const counter = recorded('counter');
/** Has the last value: `(...labels, value)`. */
export const gauge = recorded('gauge');
/** Counts what comes and goes: `(...labels, change)`. */
export const upDownCounter = recorded('upDownCounter');

/** Counts values by bucket: `(...labels, value)`. */
export const histogram = <const L extends Labels = []>(
  name: string,
  about: About<L> & { readonly buckets: readonly number[] },
): Recorded<'histogram', L> => ({ ...rowOf(name, about), kind: 'histogram', buckets: about.buckets });

/** A row that each scrape reads. */
export const reading =
  <From>() =>
  <const L extends Labels = []>(
    kind: 'counter' | 'gauge',
    name: string,
    about: About<L> & { readonly read: (from: From) => Reading<L> },
  ): Read<From, L> => ({ ...rowOf(name, about), kind, read: about.read });

type Recorder<R> =
  R extends Recorded<infer K, infer L>
    ? K extends 'counter'
      ? (...given: [...ValuesOf<L>, by?: number]) => void
      : (...given: [...ValuesOf<L>, value: number]) => void
    : never;

export type Recorders<Table> = { readonly [Name in keyof Table]: Recorder<Table[Name]> };

/** Registers the rows of a table. */
export function record<const Table extends Readonly<Record<string, Recorded>>>(
  registry: Registry,
  prefix: string,
  table: Table,
): Recorders<Table> {
  const recorders = Object.entries(table).map(([name, row]) => [name, recorderOf(registry, prefix, row)]);
  return Object.fromEntries(recorders) as Recorders<Table>;
}

export function readAtScrapes<From>(
  registry: Registry,
  prefix: string,
  table: Readonly<Record<string, Read<From>>>,
  from: From,
): void {
  for (const { name, help, kind, labels, read } of Object.values(table)) {
    const about = { name: prefix + name, help, labelNames: labels.map((one) => one.name), registers: [registry] };
    const put = (metric: Counter | Gauge, add: (labels: Named, value: number) => void): void => {
      const given = read(from);
      metric.reset();
      // A reset one without labels is 0.
      if (given === undefined) metric.remove();
      else if (typeof given === 'number') add({}, given);
      else for (const values of given) add(named(labels, values), values[labels.length] as number);
    };
    if (kind === 'gauge')
      new Gauge({
        ...about,
        collect() {
          put(this, (of, value) => this.set(of, value));
        },
      });
    else
      new Counter({
        ...about,
        collect() {
          put(this, (of, value) => this.inc(of, value));
        },
      });
  }
}

type Named = Readonly<Record<string, string>>;

const named = (labels: Labels, values: readonly Value[]): Named =>
  Object.fromEntries(labels.map(({ name }, index) => [name, String(values[index])]));

/** All combinations of the labels' values; none if some are not known. */
function combinations(labels: Labels): readonly (readonly Value[])[] {
  let all: readonly (readonly Value[])[] = [[]];
  for (const { values } of labels) all = all.flatMap((before) => values.map((value) => [...before, value]));
  return all;
}

function recorderOf(registry: Registry, prefix: string, row: Recorded): (...given: Value[]) => void {
  const { kind, labels } = row;
  const { length } = labels;
  const about = {
    name: prefix + row.name,
    help: row.help,
    labelNames: labels.map(({ name }) => name),
    registers: [registry],
  };
  const series = new Map<Value | undefined, Series>();
  const all = (): Iterable<Series> => series.values();
  /** @param given the values of the labels, and what follows them */
  const seriesOf = (given: readonly Value[]): Series => {
    const key = length === 0 ? undefined : length === 1 ? given[0] : given.slice(0, length).join('\0');
    let one = series.get(key);
    if (one === undefined) series.set(key, (one = new Series(named(labels, given), row.buckets)));
    return one;
  };
  // Those that are known beforehand begin at 0, so that the first event is an increase.
  for (const values of combinations(labels)) if (kind !== 'histogram' || length === 0) seriesOf(values);
  switch (kind) {
    case 'histogram':
      new OwnHistogram({ ...about, buckets: [...row.buckets] }, all);
      return (...given) => seriesOf(given).observe(given[length] as number);
    case 'counter':
      new Counter({
        ...about,
        collect() {
          this.reset();
          for (const { labels: of, sum } of all()) this.inc(of, sum);
        },
      });
      break;
    default:
      new Gauge({
        ...about,
        collect() {
          for (const { labels: of, sum } of all()) this.set(of, sum);
        },
      });
  }
  if (kind === 'gauge')
    return (...given) => {
      seriesOf(given).sum = given[length] as number;
    };
  return (...given) => {
    seriesOf(given).sum += (given[length] as number | undefined) ?? 1;
  };
}

class Series {
  readonly labels: Named;
  sum = 0;
  readonly #bounds: readonly number[];
  /** Number of values over the bound before and not over this one; last, over all. */
  readonly #counts: number[];

  constructor(labels: Named, bounds: readonly number[]) {
    this.labels = labels;
    this.#bounds = bounds;
    this.#counts = Array.from({ length: bounds.length + 1 }, () => 0);
  }

  observe(value: number): void {
    let at = 0;
    while (at < this.#bounds.length && value > (this.#bounds[at] ?? Infinity)) at++;
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.sum += value;
  }

  /** As text exposition has them: each bucket also counts those below it. */
  samples(name: string) {
    const { labels: sharedLabels } = this;
    const sample = (metricName: string, value: number, labels = {}) => ({ metricName, labels, sharedLabels, value });
    let count = 0;
    const buckets = this.#counts.map((ofBucket, at) => {
      count += ofBucket;
      return sample(`${name}_bucket`, count, { le: this.#bounds[at] ?? '+Inf' });
    });
    return [...buckets, sample(`${name}_sum`, this.sum), sample(`${name}_count`, count)];
  }
}

interface AboutHistogram {
  readonly name: string;
  readonly help: string;
  readonly labelNames: string[];
  readonly registers: Registry[];
  readonly buckets: number[];
}

class OwnHistogram extends Histogram {
  readonly #about: AboutHistogram;
  readonly #series: () => Iterable<Series>;

  constructor(about: AboutHistogram, series: () => Iterable<Series>) {
    super(about);
    this.#about = about;
    this.#series = series;
  }

  /** Method that prom-client exposes and its types lack. */
  getForPromString() {
    const { name, help } = this.#about;
    return { name, help, type: 'histogram', values: [...this.#series()].flatMap((one) => one.samples(name)) };
  }
}

export interface MetricDescription {
  readonly name: string;
  readonly type: 'counter' | 'gauge' | 'histogram';
  readonly labels: readonly string[];
  readonly help: string;
  readonly watch: string;
}

/** The rows of tables, by name. */
export function describe(
  prefix: string,
  ...tables: readonly Readonly<Record<string, Row<Labels> & { readonly kind: Kind }>>[]
): MetricDescription[] {
  return tables
    .flatMap((table) => Object.values(table))
    .map(({ name, kind, labels, help, watch }) => ({
      name: prefix + name,
      type: kind === 'upDownCounter' ? ('gauge' as const) : kind,
      labels: labels.map((one) => one.name),
      help,
      watch,
    }))
    .sort((one, other) => (one.name < other.name ? -1 : 1));
}
