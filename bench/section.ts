/**
 * What a section of `npm run bench` is given, and what it gives back: tables to print, and plots
 * for the docs.
 */
import type { ToolName } from '../dev/fetch/tool-table.ts';
import type { Tool } from '../dev/fetch/tools.ts';

export interface Bench {
  readonly env: NodeJS.ProcessEnv;
  /** Empty at the start, and deleted after the section. Its path is short enough for sockets. */
  readonly folder: string;
  /** Aborted by Ctrl-C: stop what was started, and throw. */
  readonly signal: AbortSignal;
  /** A run that shows that everything works, with figures that mean little. */
  readonly isShort: boolean;
  /** No fleet has more containers than this. */
  readonly largestFleet: number;
  tool(name: ToolName): Promise<Tool>;
}

/** Each row has as many cells as there are columns; the first names what was measured. */
export interface Table {
  readonly title: string;
  readonly columns: readonly string[];
  readonly rows: readonly (readonly string[])[];
  /**
   * What a reader must know to believe the figures: versions, settings, where the load came from.
   */
  readonly remarks: readonly string[];
}

export interface Series {
  readonly name: string;
  readonly points: readonly (readonly [x: number, y: number])[];
}

/** Becomes docs/<file>. */
export interface Plot {
  readonly file: `${string}.svg`;
  readonly title: string;
  readonly xLabel: string;
  readonly yLabel: string;
  /** Both axes are logarithmic: a line of slope 1 is linear growth. */
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
