/** The header of a message of events that says who caused them: it grows with the events. */
import type { Author } from '../../../schemas/api/audit/line.ts';
import { authorText } from '../../../schemas/records/event-authors.ts';
import { KiB } from '../../../schemas/limits/units.ts';

/**
 * Bytes of the header of a message that says who caused its events; an author takes 4 KiB at
 * most. NATS allows 64 KiB for all headers of a message.
 */
export const eventAuthorsBytes = 32 * KiB;

interface Run {
  readonly text: string;
  count: number;
}

const nobody = authorText(null);
/** Brackets, commas and a number, around an author. */
const headBytesOfRun = 16;

/** Gateways cut the texts of authors, so this leaves none out. */
function textOf(by: Author | undefined): string {
  const text = by === undefined ? nobody : authorText(by);
  return text.length + headBytesOfRun > eventAuthorsBytes ? nobody : text;
}

export class AuthorsHeader {
  readonly #runs: Run[] = [];
  #bytes = 0;

  /**
   * Adds the author of the next event.
   * @returns `false` if there is no room: the event needs another message
   */
  add(by: Author | undefined): boolean {
    const text = textOf(by);
    const last = this.#runs.at(-1);
    if (last?.text === text) {
      last.count++;
      return true;
    }
    const bytes = text.length + headBytesOfRun;
    if (this.#bytes + bytes > eventAuthorsBytes) return false;
    this.#runs.push({ text, count: 1 });
    this.#bytes += bytes;
    return true;
  }

  /** `undefined` if no event has an author. */
  get value(): string | undefined {
    if (this.#runs.every(({ text }) => text === nobody)) return undefined;
    return `[${this.#runs.map(({ text, count }) => `[${count},${text}]`).join(',')}]`;
  }
}
