/** Collects remarks about a Compose file, at their paths. */
import type { Values } from '../../../lib/values.ts';
import { ignoredIn, isNothing, namesOf, type Keys } from './keys.ts';
import type { Path } from '../file/tree.ts';

export interface ComposeRemark {
  readonly path: Path;
  readonly message: string;
  /** True for a remark about the whole file. */
  readonly isOfFile?: true;
  readonly at?: 'key';
}

export class Reader {
  readonly warnings: ComposeRemark[] = [];
  readonly faults: ComposeRemark[] = [];
  /** Keys that are left out, and change nothing that runs. */
  readonly harmless: Path[] = [];
  /** Keys that are left out because the author said so. */
  readonly ignored: Path[] = [];
  readonly #names: ReadonlySet<string>;
  /** Ignored keys by service. */
  readonly #ofServices = new Map<string, readonly string[]>();

  constructor(names: readonly string[], top: Values) {
    this.#names = new Set([...names, ...ignoredIn(top)]);
  }

  /** Adds the keys that the service itself says to ignore. */
  enter(name: string, service: Values): void {
    this.#ofServices.set(name, ignoredIn(service));
  }

  warn(path: Path, message: string): void {
    this.warnings.push({ path, message, at: 'key' });
  }

  fault(path: Path, message: string, at?: 'key'): void {
    this.faults.push({ path, message, ...(at === undefined ? {} : { at }) });
  }

  /** True if the author allows the key to be left out; this is noted. */
  isIgnored(path: Path): boolean {
    const own = this.#ofServices.get(path[1] ?? '') ?? [];
    const isNamed = namesOf(path).some((name) => this.#names.has(name) || own.includes(name));
    if (isNamed) this.ignored.push(path);
    return isNamed;
  }

  /** Reports a value that Longshore can't do, and without which something else would run. */
  lacks(path: Path, value: unknown): void {
    const key = path.at(-1) ?? '';
    if (isNothing(key, value) || this.isIgnored(path)) return;
    const what = `is not supported, and changes what runs: take it out, or leave it out with "--ignore ${key}"`;
    this.fault(path, what, 'key');
  }

  /** Reports all keys but those that are read, and those that begin with `x-`. */
  others(path: Path, values: Values, { read, harmless }: Keys): void {
    for (const [key, value] of Object.entries(values)) {
      if (read.includes(key) || key.startsWith('x-')) continue;
      const here = [...path, key];
      if (!harmless.includes(key)) this.lacks(here, value);
      else if (!isNothing(key, value)) this.harmless.push(here);
    }
  }

  /** The result of `read`, or a fault if that is `undefined`. An absent value stays absent. */
  take<T>(path: Path, value: unknown, read: (value: unknown) => T | undefined, form: string): T | undefined {
    if (value === undefined || value === null) return undefined;
    const result = read(value);
    if (result === undefined) this.faults.push({ path, message: `must be ${form}` });
    return result;
  }

  /** The value, or the bound if the value is larger, which is reported. */
  atMost(path: Path, value: number | undefined, most: number, unit: string): number | undefined {
    if (value === undefined || value <= most) return value;
    this.warn(path, `is at most ${most}${unit}: that is taken`);
    return most;
  }
}
