/**
 * The progress of a pull, from the lines of the engine's answer. Engines with containerd's image
 * store repeat a line while nothing arrives, so only a line that differs is progress.
 */
import type { PullProgress } from '../../schemas/api/container.ts';
import type { PullLine } from './answers.ts';

/** Layers of a pull whose progress is reported. Docker's storage holds 125 of an image. */
export const pullLayers = 256;

/** `queued`: the layer waits for other pulls of the engine. */
type Phase = 'queued' | 'fetching' | 'fetched' | 'present';

interface Layer {
  readonly phase: Phase;
  /** The layer's last line: status and bytes. */
  readonly said: string;
  readonly bytes: number;
  readonly total: number | null;
}

/** The status texts of Docker 20.10 to 29. */
const phases: readonly (readonly [RegExp, Phase])[] = [
  [/^Waiting$/, 'queued'],
  [/^(?:Pulling fs layer|Downloading|Pulling layer fs|Retrying in )/, 'fetching'],
  [/^(?:Verifying Checksum|Download complete|Extracting|Pull complete)$/, 'fetched'],
  [/^Already exists$/, 'present'],
];
const phaseOf = (status: string): Phase | undefined => phases.find(([pattern]) => pattern.test(status))?.[1];

export class PullLines {
  readonly #layers = new Map<string, Layer>();

  /** @returns `true` if the line has news */
  note({ id, status = '', progressDetail }: PullLine): boolean {
    const phase = phaseOf(status);
    if (id === undefined || phase === undefined) return true;
    const before = this.#layers.get(id);
    if (before === undefined && this.#layers.size >= pullLayers) return false;
    // Some engines send -1 for an unknown number.
    const current = wholeBytes(progressDetail?.current);
    const total = wholeBytes(progressDetail?.total);
    const said = `${status} ${current}`;
    if (before?.said === said) return false;
    this.#layers.set(id, { phase, said, ...amounts(phase, { current, total }, before) });
    return true;
  }

  /** `undefined` until the engine names a layer. */
  progress(): PullProgress | undefined {
    const layers = [...this.#layers.values()];
    if (layers.length === 0) return undefined;
    const totals = layers.flatMap(({ total }) => total ?? []);
    return {
      layers: layers.length,
      bytes: layers.reduce((sum, { bytes }) => sum + bytes, 0),
      total: totals.length === 0 ? null : totals.reduce((sum, total) => sum + total, 0),
    };
  }

  /**
   * `true` if nothing of this pull is under way: its layers wait until other pulls of the engine
   * end.
   */
  isQueued(): boolean {
    const all = [...this.#layers.values()].map(({ phase }) => phase);
    return all.includes('queued') && !all.includes('fetching');
  }
}

const wholeBytes = (value = 0): number => Math.max(0, Math.floor(value));

function amounts(
  phase: Phase,
  said: { readonly current: number; readonly total: number },
  before: Layer | undefined,
): Pick<Layer, 'bytes' | 'total'> {
  const known = before?.total ?? null;
  switch (phase) {
    case 'queued':
    case 'present':
      return { bytes: 0, total: known };
    case 'fetching':
      return said.total > 0
        ? { bytes: Math.min(said.current, said.total), total: said.total }
        : { bytes: before?.bytes ?? 0, total: known };
    case 'fetched':
      return { bytes: known ?? before?.bytes ?? 0, total: known };
  }
}
