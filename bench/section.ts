/** The input and the results of a section of `npm run bench`: tables, and plots for the docs. */
import type { ToolName } from '../dev/fetch/tool-table.ts';
import type { Tool } from '../dev/fetch/tools.ts';

export interface Bench {
  readonly env: NodeJS.ProcessEnv;
  /** A folder for this section, deleted afterwards. Its path is short enough for sockets. */
  readonly folder: string;
  /** Aborts on Ctrl-C: the section then stops what it has started, and throws. */
  readonly signal: AbortSignal;
  /** True if the run only shows that everything works; its figures then mean little. */
  readonly isShort: boolean;
  /** Upper limit for the containers of a fleet. */
  readonly largestFleet: number;
  tool(name: ToolName): Promise<Tool>;
}

/** Each row has one cell for each column; the first cell names what was measured. */
export interface Table {
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /** Facts that a reader needs to trust the figures: versions, settings, source of the load. */
  readonly remarks: readonly string[];
}

export interface Series {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

/** A plot, written to docs/<file>. */
export interface Plot {
  readonly file: `${string}.svg`;
  readonly title: string;
  readonly xLabel: string;
  readonly yLabel: string;
  /** Both axes are logarithmic, so a line of slope 1 is linear growth. */
  readonly series: readonly Series[];
}

export interface Results {
  readonly tables: readonly Table[];
  readonly plots?: readonly Plot[];
}

export interface Section {
  readonly name: string;
  run(bench: Bench): Promise<Results>;
}
