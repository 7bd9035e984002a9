/** The shape of a dashboard's file, of Grafana 10 or newer (schema version 39). */

/** A unit of Grafana's, by its id there. */
export type Unit = 'short' | 'reqps' | 'ops' | 's' | 'percentunit' | 'bytes' | 'Bps' | 'none';

export interface Query {
  readonly expr: string;
  /** The name of each line, with labels as `{{label}}`. */
  readonly legend: string;
}

export interface Panel {
  readonly title: string;
  /** Meaning of the panel, and values to worry about. */
  readonly what: string;
  readonly unit: Unit;
  /** A number (the last value) in place of lines over time. */
  readonly asNumber?: true;
  readonly queries: readonly Query[];
}

/** A choice at the top of a dashboard: the values of a label of a metric. */
export interface Variable {
  readonly name: string;
  readonly metric: string;
}

export interface Board {
  readonly file: string;
  readonly title: string;
  readonly what: string;
  readonly variables: readonly Variable[];
  readonly panels: readonly Panel[];
}

/** The datasource that is chosen at the top of the dashboard. */
const datasource = { type: 'prometheus', uid: '${datasource}' };
const columns = 24;
const numberSize = { w: 6, h: 4 };
const graphSize = { w: 12, h: 8 };

/** Places panels from the left to the right, row by row. */
function placed(panels: readonly Panel[]): { readonly x: number; readonly y: number; w: number; h: number }[] {
  let [x, y, rowHeight] = [0, 0, 0];
  return panels.map(({ asNumber }) => {
    const { w, h } = asNumber === true ? numberSize : graphSize;
    if (x + w > columns || (rowHeight !== h && x > 0)) [x, y] = [0, y + rowHeight];
    rowHeight = h;
    const place = { x, y, w, h };
    x += w;
    return place;
  });
}

const panelText = (panel: Panel, id: number, gridPos: object): object => ({
  id,
  type: panel.asNumber === true ? 'stat' : 'timeseries',
  title: panel.title,
  description: panel.what,
  gridPos,
  datasource,
  fieldConfig: {
    defaults: { unit: panel.unit, ...(panel.asNumber === true ? {} : { custom: { axisSoftMin: 0 } }) },
    overrides: [],
  },
  options:
    panel.asNumber === true
      ? { reduceOptions: { calcs: ['lastNotNull'] } }
      : { legend: { displayMode: 'list', placement: 'bottom' }, tooltip: { mode: 'multi', sort: 'desc' } },
  targets: panel.queries.map(({ expr, legend }, index) => ({
    refId: String.fromCharCode('A'.charCodeAt(0) + index),
    datasource,
    expr,
    legendFormat: legend,
  })),
});

const variableText = ({ name, metric }: Variable): object => ({
  name,
  label: name,
  type: 'query',
  datasource,
  query: { query: `label_values(${metric}, ${name})`, refId: name },
  refresh: 2,
  multi: true,
  includeAll: true,
  allValue: '.*',
  current: { text: 'All', value: '$__all' },
  sort: 1,
});

/** The file of a dashboard. */
export function boardText({ file, title, what, variables, panels }: Board): string {
  const places = placed(panels);
  const board = {
    uid: `longshore-${file}`,
    title,
    description: what,
    tags: ['longshore'],
    schemaVersion: 39,
    editable: false,
    refresh: '30s',
    time: { from: 'now-6h', to: 'now' },
    templating: {
      list: [
        { name: 'datasource', label: 'Prometheus', type: 'datasource', query: 'prometheus' },
        ...variables.map(variableText),
      ],
    },
    panels: panels.map((panel, index) => panelText(panel, index + 1, places[index] ?? {})),
  };
  return `${JSON.stringify(board, null, 2)}\n`;
}
