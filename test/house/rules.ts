/** Rules for names, prose and layout. Each takes files and returns what breaks it. */

export interface File {
  readonly path: string;
  readonly text: string;
}

/** A place where a rule is broken: `path:line: what to do`. */
export type Fault = string;

const isSource = ({ path }: File): boolean => /\.(ts|mjs)$/.test(path);
const isMarkdown = ({ path }: File): boolean => path.endsWith('.md');
const isProgram = ({ path }: File): boolean => /^(schemas|lib|gateway|actors|host-agent|cli|ops)\/.*\.ts$/.test(path);

interface Line {
  readonly path: string;
  readonly number: number;
  readonly text: string;
}

const commentPattern = /\/\*[^]*?\*\/|(?<=^|\s)\/\/.*$/gm;
export const withoutComments = (text: string): string => text.replace(commentPattern, '');

const lineNumber = (text: string, index: number): number => text.slice(0, index).split('\n').length;

function matchesIn({ path, text }: File, pattern: RegExp): Line[] {
  return [...text.matchAll(pattern)].flatMap(([found], order, all) => {
    const first = lineNumber(text, all[order]?.index ?? 0);
    return found.split('\n').map((line, offset) => ({ path, number: first + offset, text: line }));
  });
}

const comments = (file: File): Line[] => (isSource(file) ? matchesIn(file, commentPattern) : []);

/** Texts that people read: strings of several words, the names of tests among them. */
const texts = (file: File): Line[] =>
  isSource(file)
    ? matchesIn({ ...file, text: file.text.replace(commentPattern, blank) }, /'[^'\n]* [^'\n]*'|"[^"\n]* [^"\n]*"/g)
    : [];

/** Spaces in place of characters, so that lines keep their numbers. */
const blank = (text: string): string => text.replace(/[^\n]/g, ' ');

/** Markdown without its code blocks. */
function markdown(file: File): Line[] {
  if (!isMarkdown(file)) return [];
  const prose = file.text.replace(/^```[^]*?^```$/gm, blank).replace(/^(?: {4}|\t).*$/gm, blank);
  return prose.split('\n').map((text, index) => ({ path: file.path, number: index + 1, text }));
}

const at = ({ path, number }: Line, what: string): Fault => `${path}:${number}: ${what}`;

export const proseColumns = 100;

/** Tables and links cannot be broken over lines; prettier holds code to its own width. */
export function columns(files: readonly File[]): Fault[] {
  const isUnbreakable = (text: string): boolean =>
    /^\s*\|/.test(text) || /^\s*\S+$/.test(text) || /\]\(|https?:/.test(text);
  return files.flatMap((file) => {
    const lines = file.text.split('\n');
    const inComments = comments(file).map((line) => ({ ...line, text: lines[line.number - 1] ?? '' }));
    return [...inComments.filter(({ text }) => /^\s*(\/\/|\/?\*)/.test(text)), ...markdown(file)]
      .filter(({ text }) => [...text.trimEnd()].length > proseColumns && !isUnbreakable(text))
      .map((line) => at(line, `break the line at ${proseColumns} columns`));
  });
}

export interface Word {
  readonly wrong: RegExp;
  readonly right: string;
  /** Path below which the rule applies; everywhere if absent. */
  readonly below?: string;
}

/** One word for each meaning, and plain English. Fields, metrics and paths of the contract keep theirs. */
export const words: readonly Word[] = [
  { wrong: /\bkeepers?\b/i, right: 'partition manager' },
  { wrong: /\berrands?\b/i, right: 'outbox item' },
  { wrong: /\bsoil(s|ed|ing)?\b/i, right: 'mark dirty' },
  { wrong: /\b(bury|buries|buried|burial)\b/i, right: 'tombstone' },
  { wrong: /\b(lend|lends|lent|lending)\b/i, right: 'allocate' },
  { wrong: /(?<!\.)\b(forgo|forgoes|forgone)\b/i, right: 'tombstone' },
  { wrong: /\b(the|a|this) spread\b/i, right: 'rendezvous hashing' },
  { wrong: /\bbells?\b/i, right: 'doorbell' },
  { wrong: /\blatch(es|ed)?\b/i, right: 'notify' },
  { wrong: /\bwho(m|so)?ever\b/i, right: 'the actor, named' },
  { wrong: /\banew\b/i, right: 'again' },
  { wrong: /\btold of\b/i, right: 'notified of, or the actor as the subject' },
  { wrong: /\b(is|are|was|were|be) had\b/i, right: 'has, with its subject' },
  { wrong: /\bthat of which\b/i, right: 'whose' },
  { wrong: /\bfleets?\b/i, right: 'workload', below: 'host-agent/' },
  { wrong: /(?<!\/|-|_)\bforage\b(?!\/)/i, right: 'container API (the paths alone keep the word)' },
];

export function forbiddenWords(files: readonly File[], table: readonly Word[] = words): Fault[] {
  return files.flatMap((file) =>
    [...comments(file), ...texts(file), ...markdown(file)].flatMap((line) =>
      table
        .filter(
          ({ wrong, below = '' }) => line.path.startsWith(below) && wrong.test(line.text.replaceAll(/`[^`]*`/g, '')),
        )
        .map(({ wrong, right }) => at(line, `“${wrong.exec(line.text)?.[0]}” should be: ${right}`)),
    ),
  );
}

/** First words that make the reader ask what the thing is, and how to begin instead. */
const questions: Readonly<Record<string, string>> = {
  What: '“Fields of a host.”',
  Who: '“The person who signs in.”',
  Whether: '“True if the container runs.”',
  How: '“Number of attempts.”',
  Why: '“Reason for the refusal.”',
  Where: '“Folder of the state.”',
};

/** A doc comment begins with a noun or a verb. */
export function openings(files: readonly File[]): Fault[] {
  const pattern = new RegExp(String.raw`/\*\*[\s*]*(${Object.keys(questions).join('|')})\b`, 'g');
  return files.filter(isSource).flatMap(({ path, text }) =>
    [...text.matchAll(pattern)].map(({ 0: found, 1: word = '', index }) => {
      const line = { path, number: lineNumber(text, index + found.length), text: found };
      return at(line, `begin with a noun or a verb in place of “${word}”: ${questions[word]}`);
    }),
  );
}

/** Files and functions that comments and Markdown name exist. */
export function missingNames(files: readonly File[], others: ReadonlySet<string> = new Set()): Fault[] {
  const paths = files.map(({ path }) => `/${path}`);
  const isFile = (name: string): boolean =>
    paths.some((path) => path.endsWith(`/${name.replace(/^(\.{1,2}\/)+/, '')}`));
  const identifiers = new Set(
    files
      .filter(isSource)
      .flatMap(({ text }) => withoutComments(text).match(/[\p{ID_Start}$_][\p{ID_Continue}$]*/gu) ?? []),
  );
  return files.flatMap((file) =>
    [...comments(file), ...markdown(file)].flatMap((line) => {
      const named = line.text.match(/(?<![\w/.*<{-])(?:[\w.-]+\/)*[\w-]+(?:\.[\w-]+)*\.(?:ts|mjs)\b(?!\()/g) ?? [];
      const called = [...line.text.matchAll(/`(?:[\w$]+\.)*#?([\w$]+)\(/g)].map(([, name = '']) => name);
      return [
        ...named.filter((name) => !isFile(name) && !others.has(name)),
        ...called.filter((name) => !identifiers.has(name) && !others.has(name)),
      ].map((name) => at(line, `${name} does not exist`));
    }),
  );
}

/** Bytes from outside are decoded by a schema. */
export function parsedCasts(files: readonly File[]): Fault[] {
  return files
    .filter((file) => isProgram(file) || file.path.startsWith('dev/'))
    .flatMap((file) => {
      const code = { ...file, text: file.text.replace(commentPattern, blank) };
      return matchesIn(code, /\bJSON\.parse\([^;]*?\)\s+as\s+(?!unknown\b)\w+/g).map((line) =>
        at(line, 'decode it by a schema in place of a cast'),
      );
    });
}
