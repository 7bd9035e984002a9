/** Queries that several dashboards ask. */
import type { Panel, Query, Unit } from './grafana.ts';

/** The processes that are chosen at the top of a dashboard. */
export const chosen = 'instance=~"$instance"';

/** Rate of a counter per second, by a label. */
export const rateBy = (counter: string, label: string, filter = chosen): Query => ({
  expr: `sum by (${label}) (rate(${counter}{${filter}}[$__rate_interval]))`,
  legend: label
    .split(', ')
    .map((name) => `{{${name}}}`)
    .join(' '),
});

/** Total rate of a counter per second. */
export const rateOf = (counter: string, legend: string, filter = chosen): Query => ({
  expr: `sum(rate(${counter}{${filter}}[$__rate_interval]))`,
  legend,
});

/** A percentile of a histogram, in all or by a label. */
export const percentile = (histogram: string, of: number, label?: string): Query => ({
  expr: `histogram_quantile(${of / 100}, sum by (${label === undefined ? 'le' : `le, ${label}`}) (rate(${histogram}_bucket{${chosen}}[$__rate_interval])))`,
  legend: label === undefined ? `${of} %` : `{{${label}}}`,
});

export const percentiles = (histogram: string): Query[] => [50, 95, 99].map((of) => percentile(histogram, of));

export const graph = (title: string, what: string, unit: Unit, ...queries: readonly Query[]): Panel => ({
  title,
  what,
  unit,
  queries,
});

export const count = (title: string, what: string, expr: string): Panel => ({
  title,
  what,
  unit: 'none',
  asNumber: true,
  queries: [{ expr, legend: title }],
});
