/**
 * Keeps the members of a JSON text that a shape names, and skips the rest as it streams by. The
 * engine repeats labels, commands and ports of images in every list, inspection and event, so
 * makers of images decide how large its answers are; the filter bounds what the agent keeps. Many
 * streaming parsers hold each string whole before they drop it; this one only finds its end.
 */
/**
 * Bytes of a member's name, and of a string that `Some` asks about, in an answer of the engine:
 * none that is kept has more.
 */
const engineNameBytes = 512;
/** Levels of nesting in an answer of the engine. */
const engineAnswerLevels = 64;

/**
 * `true`: keep all. An array: its shape for each element. An object: only these members. A number:
 * at most so many bytes of a string, up to its first escape or byte beyond ASCII.
 */
export type Shape = true | number | readonly [Shape | Some] | { readonly [member: string]: Shape };

/** The first `max` strings of an array for which `wants` is true; the rest is skipped. */
export class Some {
  readonly max: number;
  readonly wants: (text: string) => boolean;

  constructor(max: number, wants: (text: string) => boolean = () => true) {
    this.max = max;
    this.wants = wants;
  }
}

interface Frame {
  readonly isObject: boolean;
  readonly shape: Shape;
  /** Members or elements that were kept. */
  kept: number;
}

const quote = 0x22;
const backslash = 0x5c;
const comma = 0x2c;
const colon = 0x3a;

const memberOf = (shape: Shape, name: string | undefined): Shape | undefined => {
  if (shape === true) return true;
  if (typeof shape === 'number' || Array.isArray(shape)) return undefined;
  if (name === undefined || !Object.hasOwn(shape, name)) return undefined;
  return (shape as { readonly [member: string]: Shape })[name];
};
const elementOf = ({ shape, kept }: Frame): Shape | Some | undefined => {
  if (shape === true) return true;
  const each = Array.isArray(shape) ? (shape[0] as Shape | Some) : undefined;
  return each instanceof Some && kept >= each.max ? undefined : each;
};

/** A document has more to keep than is allowed. */
export class TooLarge extends Error {}

/**
 * Takes chunks and returns documents, each as its kept text. It does not validate the text; the
 * parser of the kept text does.
 */
export class JsonFilter {
  readonly #shape: Shape;
  readonly #maxBytes: number;
  readonly #isList: boolean;
  readonly #frames: Frame[] = [];
  #kept: Buffer = Buffer.alloc(4096);
  #keptBytes = 0;
  /** The depth of open objects and arrays inside a skipped value. */
  #skipped = 0;
  #string: 'none' | 'name' | 'asked' | 'kept' | 'skipped' = 'none';
  #isEscaped = false;
  /** Bytes of the string that may still be kept. */
  #room = Infinity;
  #expectsName = false;
  #isInScalar = false;
  #name: Buffer[] = [];
  #nameLength = 0;
  /** The shape of the next value; `undefined` means to skip it. */
  #next: Shape | Some | undefined;

  /**
   * @param maxBytes the most to keep of one document
   * @param isList the text is one array, and each of its elements is a document
   */
  constructor(shape: Shape, maxBytes: number, isList = false) {
    this.#shape = shape;
    this.#next = shape;
    this.#maxBytes = maxBytes;
    this.#isList = isList;
  }

  /**
   * @throws TooLarge where more than `maxBytes` would be kept; Error where the brackets do not
   * match.
   */
  push(chunk: Buffer): Buffer[] {
    const documents: Buffer[] = [];
    for (let at = 0; at < chunk.length;) {
      if (this.#string !== 'none') at = this.#inString(chunk, at);
      else if (this.#between(chunk, at++)) documents.push(this.#take());
    }
    return documents;
  }

  /** @throws Error where the text ended inside a document. */
  end(): Buffer[] {
    if (this.#frames.length > 0 || this.#string !== 'none' || this.#skipped > 0) throw new Error('the text is cut off');
    // A number, or null, as a whole document.
    return this.#keptBytes > 0 ? [this.#take()] : [];
  }

  /** Takes one byte outside strings. @returns `true` if it ends a document */
  #between(chunk: Buffer, at: number): boolean {
    const byte = chunk[at];
    switch (byte) {
      case 0x20:
      case 0x0a:
      case 0x0d:
      case 0x09:
        return false;
      case quote:
        this.#beginString();
        return false;
      case 0x7b:
      case 0x5b:
        this.#open(chunk, at, byte === 0x7b);
        return false;
      case 0x7d:
      case 0x5d:
        return this.#close(chunk, at);
      case comma:
        if (this.#skipped === 0) this.#separate();
        return false;
      case colon:
        if (this.#skipped === 0) this.#member();
        return false;
      default:
        if (this.#skipped === 0 && this.#next !== undefined && !(this.#next instanceof Some)) {
          if (!this.#isInScalar) this.#begin();
          this.#isInScalar = true;
          this.#keep(chunk, at, at + 1);
        }
        return false;
    }
  }

  #beginString(): void {
    this.#isEscaped = false;
    if (this.#skipped > 0) this.#string = 'skipped';
    else if (this.#expectsName || this.#next instanceof Some) {
      this.#string = this.#expectsName ? 'name' : 'asked';
      this.#name = [];
      this.#nameLength = 0;
    } else if (this.#next === undefined) this.#string = 'skipped';
    else {
      this.#room = typeof this.#next === 'number' ? this.#next : Infinity;
      this.#begin();
      this.#keepByte(quote);
      this.#string = 'kept';
    }
  }

  /** Goes to the end of the string, or of the chunk. */
  #inString(chunk: Buffer, from: number): number {
    for (let at = from; ;) {
      const end = chunk.indexOf(quote, at);
      const upTo = end < 0 ? chunk.length : end;
      let first = upTo;
      while (first > at && chunk[first - 1] === backslash) first -= 1;
      // An escape that began in the previous chunk covers the first byte.
      const carried = this.#isEscaped && first === at ? 1 : 0;
      const isEscaped = (upTo - first + carried) % 2 === 1;
      this.#isEscaped = isEscaped;
      if (end < 0) {
        this.#inside(chunk, from, chunk.length);
        return chunk.length;
      }
      if (isEscaped) {
        this.#isEscaped = false;
        at = end + 1;
        continue;
      }
      this.#inside(chunk, from, end);
      if (this.#string === 'kept') this.#keepByte(quote);
      if (this.#string === 'asked') this.#ask();
      this.#string = 'none';
      return end + 1;
    }
  }

  #inside(chunk: Buffer, from: number, to: number): void {
    if (this.#string === 'kept') this.#keep(chunk, from, this.#endOfPrefix(chunk, from, to));
    if (this.#string !== 'name' && this.#string !== 'asked') return;
    this.#nameLength += to - from;
    const isKept = this.#frames.at(-1)?.shape === true;
    if (isKept && this.#nameLength > this.#maxBytes) this.#refuse();
    // Copied, because the caller may reuse the chunk.
    if (isKept || this.#nameLength <= engineNameBytes) this.#name.push(Buffer.from(chunk.subarray(from, to)));
  }

  /** Keeps the string that has ended, if it is wanted. */
  #ask(): void {
    const text = this.#nameText();
    if (text === undefined || !(this.#next instanceof Some) || !this.#next.wants(text)) return;
    this.#begin();
    this.#keepName();
  }

  /** `undefined` if it is longer than any name that counts. */
  #nameText(): string | undefined {
    if (this.#nameLength > engineNameBytes) return undefined;
    return String(JSON.parse(`"${Buffer.concat(this.#name).toString('utf8')}"`));
  }

  #keepName(): void {
    this.#keepByte(quote);
    for (const part of this.#name) this.#keep(part, 0, part.length);
    this.#keepByte(quote);
  }

  #endOfPrefix(chunk: Buffer, from: number, to: number): number {
    if (this.#room === Infinity) return to;
    for (let at = from; at < to; at++) {
      const byte = chunk[at] as number;
      if (byte === backslash || byte > 0x7f) this.#room = 0;
      if (this.#room === 0) return at;
      this.#room -= 1;
    }
    return to;
  }

  #open(chunk: Buffer, at: number, isObject: boolean): void {
    if (this.#skipped > 0 || this.#next === undefined || this.#next instanceof Some) {
      this.#skipped += 1;
      return;
    }
    const shape = this.#next;
    // The brackets of a list are of none of its documents.
    if (!this.#isList || this.#frames.length > 0 || isObject) {
      this.#begin();
      this.#keep(chunk, at, at + 1);
    }
    if (this.#frames.length >= engineAnswerLevels) throw new Error(`more than ${engineAnswerLevels} levels`);
    const frame = { isObject, shape, kept: 0 };
    this.#frames.push(frame);
    this.#expectsName = isObject;
    this.#next = isObject ? undefined : elementOf(frame);
  }

  #close(chunk: Buffer, at: number): boolean {
    this.#isInScalar = false;
    if (this.#skipped > 0) {
      this.#skipped -= 1;
      return false;
    }
    if (this.#frames.pop() === undefined) throw new Error('a closing bracket without an opening one');
    this.#expectsName = false;
    this.#next = undefined;
    const isOuter = this.#isList && this.#frames.length === 0;
    if (!isOuter) this.#keep(chunk, at, at + 1);
    return this.#frames.length === (this.#isList ? 1 : 0);
  }

  #separate(): void {
    const frame = this.#frames.at(-1);
    this.#isInScalar = false;
    this.#expectsName = frame?.isObject === true;
    this.#next = frame === undefined || frame.isObject ? undefined : elementOf(frame);
  }

  #member(): void {
    this.#expectsName = false;
    const frame = this.#frames.at(-1);
    if (frame === undefined) return;
    if (frame.shape === true) {
      this.#next = true;
      return;
    }
    this.#next = memberOf(frame.shape, this.#nameText());
  }

  /** Writes what comes before a kept value. */
  #begin(): void {
    const frame = this.#frames.at(-1);
    if (frame === undefined) return;
    const isDocument = this.#isList && this.#frames.length === 1;
    if (frame.kept > 0 && !isDocument) this.#keepByte(comma);
    frame.kept += 1;
    if (!frame.isObject) return;
    this.#keepName();
    this.#keepByte(colon);
  }

  #keep(bytes: Buffer, from: number, to: number): void {
    this.#grow(to - from);
    bytes.copy(this.#kept, this.#keptBytes, from, to);
    this.#keptBytes += to - from;
  }

  #keepByte(byte: number): void {
    this.#grow(1);
    this.#kept[this.#keptBytes++] = byte;
  }

  #grow(more: number): void {
    const needed = this.#keptBytes + more;
    if (needed > this.#maxBytes) this.#refuse();
    if (needed <= this.#kept.length) return;
    const larger = Buffer.alloc(Math.max(needed, 2 * this.#kept.length));
    this.#kept.copy(larger, 0, 0, this.#keptBytes);
    this.#kept = larger;
  }

  #refuse(): never {
    throw new TooLarge(`the fields to keep take more than ${this.#maxBytes} bytes`);
  }

  #take(): Buffer {
    const document = Buffer.from(this.#kept.subarray(0, this.#keptBytes));
    this.#keptBytes = 0;
    this.#isInScalar = false;
    this.#next = this.#shape;
    return document;
  }
}
