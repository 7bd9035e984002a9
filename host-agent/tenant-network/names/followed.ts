import { readFileSync, statSync } from 'node:fs';

/** A file that is read again when it has changed. */
export class Followed<T> {
  readonly #path: string;
  readonly #read: (bytes: Buffer) => T;
  #seen = '';
  value: T;

  constructor(path: string, first: T, read: (bytes: Buffer) => T) {
    this.#path = path;
    this.#read = read;
    this.value = first;
  }

  /** @throws the error of reading; the last content stays */
  look(): void {
    const { ino, mtimeMs, size } = statSync(this.#path);
    const seen = `${ino} ${mtimeMs} ${size}`;
    if (seen === this.#seen) return;
    this.value = this.#read(readFileSync(this.#path));
    this.#seen = seen;
  }
}
