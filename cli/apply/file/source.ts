/**
 * A YAML file with positions: each fault names its line and column. Variables are filled in, and
 * texts stay as they are written. Pure.
 */
import {
  isAlias,
  isMap,
  isNode,
  isPair,
  isScalar,
  isSeq,
  Lexer,
  LineCounter,
  parseAllDocuments,
  parseDocument,
  Parser,
  visit,
  type Document,
  type Node,
  type Scalar,
} from 'yaml';
import { limits } from '../../../schemas/limits.ts';
import { BadVariable, interpolated, type Variables } from './interpolate.ts';
import { isBranch, type Path, type Place, type Remark, type Tree } from './tree.ts';

const reading = {
  merge: true,
  prettyErrors: false,
  // The check would compare each key with all others.
  uniqueKeys: false,
} as const;

interface Parsed {
  readonly document: Document;
  readonly lines: LineCounter;
}

export class SourceFile {
  readonly file: string;
  readonly #document: Document;
  /** Faults beyond its syntax. */
  readonly #faults: Remark[] = [];
  readonly #lines: LineCounter;
  /** Node that each alias stands for. */
  readonly #aliases = new Map<unknown, Node | undefined>();

  /** @param parsed one document of the text; absent if the text is a single document */
  constructor(file: string, text: string, parsed?: Parsed) {
    this.file = file;
    const fault = parsed === undefined ? tooDeep(text) : undefined;
    this.#lines = parsed?.lines ?? new LineCounter();
    this.#document =
      parsed?.document ?? parseDocument(fault === undefined ? text : '', { ...reading, lineCounter: this.#lines });
    if (fault === undefined) this.#look();
    else this.#faults.push(this.#remark(0, '', fault));
  }

  /** One for each YAML document of a file that is not empty; at least one. */
  static documents(file: string, text: string): [SourceFile, ...SourceFile[]] {
    const lines = new LineCounter();
    // The library takes each text that has no document for an empty stream.
    const all = tooDeep(text) === undefined ? parseAllDocuments(text, { ...reading, lineCounter: lines }) : [];
    const full = all.filter(({ contents, errors }) => !isEmpty(contents) || errors.length > 0);
    if (full.length > limits.applyNamedFiles) return [new SourceFile(file, text)];
    const [first, ...others] = full.map((document) => new SourceFile(file, text, { document, lines }));
    return first === undefined ? [new SourceFile(file, text)] : [first, ...others];
  }

  /**
   * Aliases that expand to more than `limits.applyExpandedValues` are one. Only a file without such
   * faults is read further: whatever walks it ends.
   * @param tags that the file may have
   */
  syntaxFaults(tags: readonly string[] = []): Remark[] {
    const ofSyntax = [...this.#document.errors, ...this.#document.warnings]
      .filter(({ code, message }) => code !== 'TAG_RESOLVE_FAILED' || !tags.some((tag) => message.endsWith(`: ${tag}`)))
      .map(({ pos, code, message }) => this.#remark(pos[0], '', code === 'MULTIPLE_DOCS' ? severalText : message));
    const faults = [...ofSyntax, ...this.#faults];
    if (faults.length > 0 || this.#expandedValues() <= limits.applyExpandedValues) return faults;
    const message = `its aliases expand to more than ${limits.applyExpandedValues} values: use fewer`;
    return [this.#remark(startOf(this.#document.contents) ?? 0, '', message)];
  }

  /** The fault of a document that follows another one where there may be one. */
  several(): Remark {
    return this.#remark(startOf(this.#document.contents) ?? 0, '', severalText);
  }

  /** The keys at the top. */
  get keys(): string[] {
    const { contents } = this.#document;
    return isMap(contents) ? contents.items.map(({ key }) => nameOf(key)) : [];
  }

  /**
   * Fills in variables in all texts but keys. If one is not set and has no default, it is a fault;
   * with `isLenient` it is empty, as in Compose, and `warnings` names it.
   */
  interpolate(valueOf: Variables['valueOf'], isLenient: boolean): { faults: Remark[]; warnings: Remark[] } {
    const [faults, warnings]: [Remark[], Remark[]] = [[], []];
    visit(this.#document, {
      Scalar: (key, node) => {
        if (key === 'key' || typeof node.value !== 'string' || !node.value.includes('$')) return;
        const offset = node.range?.[0] ?? 0;
        const missing = (name: string): string => {
          if (!isLenient)
            throw new BadVariable(`the variable ${name} is not set: set it, or write \${${name}:-default}`);
          warnings.push(this.#remark(offset, '', `the variable ${name} is not set, and counts as empty`));
          return '';
        };
        try {
          setText(node, interpolated(node.value, { valueOf, missing, isLenient }));
        } catch (error) {
          if (!(error instanceof BadVariable)) throw error;
          faults.push(this.#remark(offset, '', error.message));
        }
      },
    });
    return { faults, warnings };
  }

  /** Numbers and booleans at such a path become texts as they are written; `*` is any key. */
  keepTexts(pattern: Path): void {
    for (const node of this.#scalarsAt(this.#document.contents, pattern)) {
      if (typeof node.value === 'number' || typeof node.value === 'boolean')
        node.value = node.source ?? String(node.value);
    }
  }

  /** `0400` at such a path is octal, as in Compose files; YAML 1.2 reads four hundred. */
  readOctal(pattern: Path): void {
    for (const node of this.#scalarsAt(this.#document.contents, pattern)) {
      if (/^0[0-7]+$/.test(node.source ?? '')) node.value = Number.parseInt(node.source ?? '', 8);
    }
  }

  /** The whole file as a tree. */
  tree(): Tree {
    const { contents } = this.#document;
    const place = this.#place(startOf(contents) ?? 0);
    return this.#tree(contents, place, place);
  }

  /** As `toJS` of the library, which looks through the whole file for each alias. */
  #tree(node: unknown, place: Place, keyPlace: Place): Tree {
    const here = this.#resolved(node);
    const tag = isNode(here) && here.tag !== undefined ? { tag: here.tag } : {};
    const placed = { place, keyPlace, ...tag };
    if (isSeq(here))
      return {
        ...placed,
        items: here.items.map((item) => {
          const at = this.#place(startOf(item) ?? 0);
          return this.#tree(item, at, at);
        }),
      };
    if (!isMap(here)) return { ...placed, value: isScalar(here) ? here.value : null };
    const entries = new Map<string, Tree>();
    for (const { key, value } of here.items) {
      const at = this.#place(startOf(key) ?? 0);
      if (!isMerge(key)) {
        entries.set(
          keyText(key),
          this.#tree(value, this.#place((isScalar(value) ? startOf(value) : undefined) ?? startOf(key)), at),
        );
        continue;
      }
      for (const one of this.#mergedBy(value)) {
        const merged = this.#tree(one, at, at);
        if (!isBranch(merged)) continue;
        for (const [name, entry] of merged.entries) if (!entries.has(name)) entries.set(name, entry);
      }
    }
    return { ...placed, entries };
  }

  /** Maps that a merge key names. */
  #mergedBy(value: unknown): readonly unknown[] {
    const here = this.#resolved(value);
    return isSeq(here) ? here.items : [here];
  }

  /** Text at a key of the top level, as it is written; `undefined` if its value is no scalar. */
  textAt(name: string): string | undefined {
    const { contents } = this.#document;
    const value = isMap(contents) ? contents.items.find(({ key }) => nameOf(key) === name)?.value : undefined;
    const node = this.#resolved(value);
    return isScalar(node) && node.value !== null ? String(node.value) : undefined;
  }

  /** Number of values with each alias expanded; each anchor is counted once. */
  #expandedValues(): number {
    const counted = new Map<unknown, number>();
    const count = (node: unknown): number => {
      const here = this.#resolved(node);
      const known = counted.get(here);
      if (known !== undefined) return known;
      // An anchor that contains itself has no end.
      counted.set(here, Number.POSITIVE_INFINITY);
      const items = isMap(here) ? here.items.map(({ value }) => value) : isSeq(here) ? here.items : [];
      const sum = items.reduce<number>((total, item) => total + count(item), 1);
      counted.set(here, sum);
      return sum;
    };
    return count(this.#document.contents);
  }

  #place(offset = 0): Place {
    const { line, col } = this.#lines.linePos(offset);
    return { file: this.file, line: Math.max(line, 1), column: Math.max(col, 1) };
  }

  #remark(offset: number, field: string, message: string): Remark {
    return { place: this.#place(offset), field, message };
  }

  #resolved(node: unknown): unknown {
    return isAlias(node) ? this.#aliases.get(node) : node;
  }

  /** Finds what aliases stand for, and checks keys. */
  #look(): void {
    // An anchor may be set again: an alias means the last one before it.
    const anchors = new Map<string, Node>();
    const merges: unknown[] = [];
    visit(this.#document, (_, node) => {
      if (isAlias(node)) this.#aliases.set(node, anchors.get(node.source));
      else if (isNode(node) && node.anchor !== undefined) anchors.set(node.anchor, node);
      if (isMap(node)) this.#checkKeys(node.items.map(({ key }) => key));
      if (isPair(node) && isMerge(node.key)) merges.push(node.value);
    });
    for (const value of merges) {
      if (!this.#mergedBy(value).every((one) => isMap(this.#resolved(one))))
        this.#faults.push(this.#remark(startOf(value) ?? 0, '', 'what "<<" names must be a map, or several'));
    }
  }

  #checkKeys(keys: readonly unknown[]): void {
    const seen = new Set<unknown>();
    for (const key of keys) {
      const message = !isScalar(key)
        ? 'a key must be a text'
        : seen.has(key.value)
          ? 'Map keys must be unique'
          : undefined;
      if (message !== undefined) this.#faults.push(this.#remark(startOf(key) ?? 0, '', message));
      else if (isScalar(key)) seen.add(key.value);
    }
  }

  *#scalarsAt(node: unknown, path: Path): Generator<Scalar> {
    const here = this.#resolved(node);
    const [first, ...rest] = path;
    if (first === undefined) {
      if (isScalar(here)) yield here;
    } else if (isSeq(here)) {
      for (const item of here.items) yield* this.#scalarsAt(item, rest);
    } else if (isMap(here)) {
      for (const { key, value } of here.items) {
        const name = nameOf(key);
        if (isMerge(key)) for (const one of this.#mergedBy(value)) yield* this.#scalarsAt(one, path);
        else if (first === '*' || first === name) yield* this.#scalarsAt(value, rest);
      }
    }
  }
}

const isEmpty = (node: unknown): boolean => node === null || (isScalar(node) && node.value === null);

const severalText = 'has several YAML documents: write a file for each';

/**
 * Message if the text is nested too deeply. This parser keeps a stack of its own; the next one is
 * recursive.
 */
export function tooDeep(text: string): string | undefined {
  const parser = new Parser();
  for (const lexeme of new Lexer().lex(text)) {
    for (const _ of parser.next(lexeme));
    if (parser.stack.length > limits.applyDepth) return `it is nested deeper than ${limits.applyDepth} levels`;
  }
  return undefined;
}

const isMerge = (key: unknown): boolean => isScalar(key) && typeof key.value === 'symbol';

/** The key as a property name of JavaScript. */
const keyText = (key: unknown): string => (isScalar(key) && key.value === null ? '' : nameOf(key));

/** The key of a merge is a symbol. */
function nameOf(key: unknown): string {
  const value = isScalar(key) ? key.value : key;
  return typeof value === 'symbol' ? (value.description ?? '') : String(value);
}

const startOf = (node: unknown): number | undefined =>
  typeof node === 'object' && node !== null && 'range' in node ? (node as Scalar).range?.[0] : undefined;

/** A plain text that looks like a number becomes one, as if it had been written. */
function setText(node: Scalar, text: string): void {
  const isPlain = node.type === 'PLAIN' && /^(?:-?(?:0|[1-9]\d*)(?:\.\d+)?|true|false)$/.test(text);
  node.source = text;
  node.value = isPlain ? (JSON.parse(text) as unknown) : text;
}
