/**
 * Metrics of what happens many times in each request. prom-client looks the labels up at each `inc`
 * and the bound at each `observe`, by a text that it makes of the number, which took a fortieth of
 * the gateway's time under creates. Here a label's child counts in plain numbers, and prom-client
 * has them at a scrape.
 */
import { Counter, Histogram, type Registry } from 'prom-client';

interface About<Label extends string> {
  readonly name: string;
  readonly help: string;
  readonly labelNames: Label[];
  readonly registers: Registry[];
}

type Labels<Label extends string> = Readonly<Record<Label, string>>;

/** Makes a child of a counter: `count` only grows, but for a scrape, which takes it. */
export function frequentCounter<Label extends string>(
  about: About<Label>,
): (labels: Labels<Label>) => { count: number } {
  const children: { readonly labels: Labels<Label>; count: number }[] = [];
  new Counter({
    ...about,
    collect() {
      for (const child of children) {
        if (child.count > 0) this.inc(child.labels, child.count);
        child.count = 0;
      }
    },
  });
  return (labels) => {
    const child = { labels, count: 0 };
    children.push(child);
    return child;
  };
}

class Child<Label extends string> {
  readonly labels: Labels<Label>;
  readonly #bounds: readonly number[];
  /** Number of values over the bound before and not over this one; last, over all. */
  readonly #counts: number[];
  #sum = 0;

  constructor(labels: Labels<Label>, bounds: readonly number[]) {
    this.labels = labels;
    this.#bounds = bounds;
    this.#counts = Array.from({ length: bounds.length + 1 }, () => 0);
  }

  observe(value: number): void {
    let at = 0;
    while (at < this.#bounds.length && value > (this.#bounds[at] ?? Infinity)) at++;
    this.#counts[at] = (this.#counts[at] ?? 0) + 1;
    this.#sum += value;
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
    return count === 0 ? [] : [...buckets, sample(`${name}_sum`, this.#sum), sample(`${name}_count`, count)];
  }
}

/** A histogram whose values are given to its children alone. */
export class FrequentHistogram<Label extends string> extends Histogram<Label> {
  readonly #about: About<Label> & { readonly buckets: number[] };
  readonly #children: Child<Label>[] = [];

  constructor(about: About<Label> & { readonly buckets: number[] }) {
    super(about);
    this.#about = about;
  }

  child(labels: Labels<Label>): { observe(value: number): void } {
    const child = new Child(labels, this.#about.buckets);
    this.#children.push(child);
    return child;
  }

  /** Method that prom-client exposes and its types lack. */
  getForPromString() {
    const { name, help } = this.#about;
    return { name, help, type: 'histogram', values: this.#children.flatMap((child) => child.samples(name)) };
  }
}
