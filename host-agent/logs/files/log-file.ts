/** The lines of one log, from a cursor on, over the engine's rotations. */
import type { Line } from '../lines.ts';
import { isUpTo, Resume, sinceStamp, type Cursor } from '../resume.ts';
import { FileChain } from './chain.ts';
import { RecordReader } from './records.ts';
import { find, type Found } from './ring.ts';

export class LogFile {
  readonly #cursor: Cursor;
  readonly #chain: FileChain;
  readonly #records: RecordReader;
  /** Finds the cursor's line if its position in the files is unknown. */
  readonly #resume: Resume;
  /** `true` if the lines of the cursor's time have been read. */
  #isPast = false;
  /** The time since which lines are missing; `undefined` if none are. */
  #lostSince: string | undefined;
  #gaps = 0;
  #told = { gaps: 0, damaged: 0 };

  private constructor(path: string, cursor: Cursor, { own, place, isExact }: Found) {
    this.#cursor = cursor;
    this.#chain = new FileChain(path, own, place.offset);
    this.#records = new RecordReader(place);
    this.#resume = new Resume(isExact ? null : cursor.place);
  }

  /** @throws an error that `isUnreadable` recognises if there are no files that can be read */
  static async open(path: string, cursor: Cursor, nowMs: number): Promise<LogFile> {
    return new LogFile(path, cursor, await find(path, cursor.at, sinceStamp(cursor.place, nowMs)));
  }

  /**
   * The faults since the last call: how often lines are missing, and the number of damaged records.
   */
  takeFaults(): { readonly gaps: number; readonly damaged: number } {
    const [gaps, damaged] = [this.#gaps + this.#resume.gaps, this.#records.damaged];
    const news = { gaps: gaps - this.#told.gaps, damaged: damaged - this.#told.damaged };
    this.#told = { gaps, damaged };
    return news;
  }

  /**
   * The new lines, in order; `undefined` if the engine has written no more.
   * @throws an error that `isUnreadable` recognises if the log was removed
   */
  async read(): Promise<readonly Line[] | undefined> {
    const chunk = await this.#chain.read();
    if (chunk === undefined) {
      const held = this.#resume.release();
      return held.length > 0 ? held : undefined;
    }
    if (chunk.isAfterGap) this.#lostSince ??= this.#lastTs;
    if (chunk.isStart) this.#records.startFile(chunk.file);
    return this.#marked(this.#fresh(this.#records.push(chunk.bytes)));
  }

  close(): Promise<void> {
    return this.#chain.close();
  }

  get #lastTs(): string | undefined {
    const { ts } = this.#records.place;
    return ts === '' ? this.#cursor.place?.ts : ts;
  }

  #fresh(lines: readonly Line[]): Line[] {
    const found = this.#resume.isFlowing ? lines : lines.flatMap((line) => this.#resume.push(line));
    const { place } = this.#cursor;
    if (place === null || this.#isPast) return [...found];
    this.#isPast = found.some(({ ts }) => ts > place.ts);
    return found.filter((line) => !isUpTo(line, place));
  }

  #marked(lines: Line[]): Line[] {
    const [first] = lines;
    if (first === undefined || this.#lostSince === undefined) return lines;
    const marked = { ...first, lostSince: this.#lostSince };
    this.#lostSince = undefined;
    this.#gaps += 1;
    return [marked, ...lines.slice(1)];
  }
}
