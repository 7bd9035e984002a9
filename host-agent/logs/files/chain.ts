/**
 * Reads the bytes of a log's files one after another. Files behind the one that is read are held
 * open, so that no rotation takes them away unread.
 */
import { limits } from '../../../schemas/limits.ts';
import { filesOf, newestOf, openNamed, readAt, type OpenFile } from './ring.ts';
import { MiB } from '../../../schemas/limits/units.ts';

/** After so many bytes of a rotated file, the agent opens the next, so that it stays readable. */
export const logFileLookBytes = 1 * MiB;

export interface Chunk {
  readonly bytes: Buffer;
  readonly file: string;
  /** `true` if the bytes are the first of this file. */
  readonly isStart: boolean;
  /** `true` if bytes between the last chunk and this one may be lost. */
  readonly isAfterGap: boolean;
}

interface Link extends OpenFile {
  readonly isAfterGap: boolean;
}

export class FileChain {
  readonly #path: string;
  #own: OpenFile;
  #offset: number;
  /** The files after `own`, the next one first. */
  readonly #next: Link[] = [];
  /** `true` if `own` was renamed before its end was read, so that it does not grow any more. */
  #isFinal = false;
  #isAfterGap = false;
  #unlooked = 0;

  constructor(path: string, own: OpenFile, offset: number) {
    this.#path = path;
    this.#own = own;
    this.#offset = offset;
  }

  /**
   * `undefined` if the engine has written no more.
   * @throws an error that `isUnreadable` recognises if the log was removed
   */
  async read(): Promise<Chunk | undefined> {
    for (;;) {
      if (this.#unlooked > logFileLookBytes) await this.#lookBehind();
      const chunk = await this.#chunk();
      if (chunk !== undefined) return chunk;
      if (this.#isFinal) await this.#advance();
      else {
        await this.#lookBehind();
        if (this.#next.length === 0) return undefined;
        this.#isFinal = true;
      }
    }
  }

  async close(): Promise<void> {
    for (const { handle } of [this.#own, ...this.#next]) await handle.close();
  }

  /** `undefined` at the end of `own`. */
  async #chunk(): Promise<Chunk | undefined> {
    const { size } = await this.#own.handle.stat();
    if (size < this.#offset) {
      // Somebody has emptied the file, and the engine appends to it.
      this.#offset = 0;
      this.#isAfterGap = true;
    }
    const length = Math.min(size - this.#offset, limits.logFileReadBytes);
    if (length === 0) return undefined;
    const bytes = await readAt(this.#own, this.#offset, length);
    const chunk = { bytes, file: this.#own.file, isStart: this.#offset === 0, isAfterGap: this.#isAfterGap };
    this.#isAfterGap = false;
    this.#offset += bytes.length;
    this.#unlooked += bytes.length;
    return chunk;
  }

  async #advance(): Promise<void> {
    const next = this.#next.shift();
    if (next === undefined) return;
    await this.#own.handle.close();
    this.#own = next;
    this.#offset = 0;
    this.#isFinal = false;
    this.#isAfterGap ||= next.isAfterGap;
  }

  /** Opens the files that the engine began since the last check, as many as it keeps. */
  async #lookBehind(): Promise<void> {
    this.#unlooked = 0;
    const most = limits.engineLogFiles - 1;
    for (let attempt = 0; attempt < limits.logFileAttempts && this.#next.length < most; attempt++) {
      const last = this.#next.at(-1) ?? this.#own;
      if ((await newestOf(this.#path))?.file === last.file) return;
      const files = await filesOf(this.#path);
      const at = files.findIndex(({ file }) => file === last.file);
      // The file is just being renamed: the next one is about to be made.
      if (at === 0) return;
      // Without a name, the file was rotated away: the number of files that came in between is
      // unknown.
      const next = files.at(at < 0 ? -1 : at - 1);
      const opened = next === undefined ? undefined : await openNamed(next);
      if (opened !== undefined) this.#next.push({ ...opened, isAfterGap: at < 0 });
    }
  }
}
