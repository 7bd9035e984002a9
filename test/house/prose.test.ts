/** Names, prose and layout keep the rules of rules.ts, and each rule refuses a bad sample. */
import { execFileSync } from 'node:child_process';
import { existsSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { repositoryRoot } from '../../dev/paths.ts';
import { exceptions, namesOfOthers, type RuleName } from './exceptions.ts';
import { columns, forbiddenWords, missingNames, openings, parsedCasts, type Fault, type File } from './rules.ts';

const rules: Record<RuleName, (files: readonly File[]) => Fault[]> = {
  columns,
  words: forbiddenWords,
  openings,
  names: (files) => missingNames(files, namesOfOthers),
  casts: parsedCasts,
};

const paths = execFileSync('git', ['ls-files', '-z', '--cached', '--others', '--exclude-standard'], {
  cwd: repositoryRoot,
  encoding: 'utf8',
}).split('\0');
// The rules and their bad samples contain what they look for.
const files = paths
  .filter((path) => /\.(ts|mjs|md)$/.test(path) && !/^test\/house\/(rules|prose\.test)\.ts$/.test(path))
  .filter((path) => existsSync(join(repositoryRoot, path)))
  .map((path) => ({ path, text: readFileSync(join(repositoryRoot, path), 'utf8') }));

for (const [name, rule] of Object.entries(rules) as [RuleName, (files: readonly File[]) => Fault[]][]) {
  t.test(`every file keeps the rule of ${name}`, (t) => {
    const excepted = Object.keys(exceptions[name]);
    const isExcepted = (fault: Fault): boolean =>
      excepted.some((path) => fault.startsWith(path.endsWith('/') ? path : `${path}:`));
    t.same(
      rule(files).filter((fault) => !isExcepted(fault)),
      [],
    );
    t.end();
  });
}

/** A file, and what a rule says of it, without the path. */
type Row = readonly [path: string, text: string, faults: readonly string[]];

const prefix = /^[^:]*:/;
const longText = 'x '.repeat(60).trim();

const rows: Record<RuleName, readonly Row[]> = {
  columns: [
    ['lib/a.ts', `/** ${longText} */`, ['1: break the line at 100 columns']],
    ['lib/a.ts', `/**\n * short\n * ${longText}\n */`, ['3: break the line at 100 columns']],
    ['lib/a.ts', `  // ${longText}`, ['1: break the line at 100 columns']],
    ['lib/a.ts', `const text = '${longText}'; // short`, []],
    ['docs/a.md', longText, ['1: break the line at 100 columns']],
    ['docs/a.md', `| ${longText} |`, []],
    ['docs/a.md', `    ${longText}\n\`\`\`\n${longText}\n\`\`\``, []],
    ['docs/a.md', `[a link](${longText})`, []],
  ],
  words: [
    ['lib/a.ts', '// The keeper takes it.', ['1: “keeper” should be: partition manager']],
    ['lib/a.ts', '// The Errands are written.', ['1: “Errands” should be: outbox item']],
    ['lib/a.ts', '/** A write soils it. */', ['1: “soils” should be: mark dirty']],
    ['lib/a.ts', '/** Buried once. */', ['1: “Buried” should be: tombstone']],
    ['lib/a.ts', '// The network lends it.', ['1: “lends” should be: allocate']],
    ['lib/a.ts', '// The owner must forgo it.', ['1: “forgo” should be: tombstone']],
    ['lib/a.ts', '// By the spread.', ['1: “the spread” should be: rendezvous hashing']],
    ['lib/a.ts', '// Rings a bell; the doorbell is right.', ['1: “bell” should be: doorbell']],
    ['lib/a.ts', '// The latch opens.', ['1: “latch” should be: notify']],
    ['lib/a.ts', "t.test('whoever asks', check);", ['1: “whoever” should be: the actor, named']],
    ['lib/a.ts', 'throw new Error("made anew");', ['1: “anew” should be: again']],
    ['docs/a.md', 'One\nis told of it.', ['2: “told of” should be: notified of, or the actor as the subject']],
    ['docs/a.md', 'No answer is had.', ['1: “is had” should be: has, with its subject']],
    ['docs/a.md', 'That of which it speaks.', ['1: “That of which” should be: whose']],
    ['docs/a.md', 'A forage peer.', ['1: “forage” should be: container API (the paths alone keep the word)']],
    ['docs/a.md', 'POST /api/forage/containers answers.', []],
    ['host-agent/a.ts', '// The fleet of this host.', ['1: “fleet” should be: workload']],
    ['gateway/a.ts', '// The fleet of hosts.', []],
    ['lib/a.ts', "const keeper = 1; // `keeper` is the field's name.\ndecide('keeper');", []],
  ],
  openings: [
    ['lib/a.ts', '/** What it has. */', ['1: begin with a noun or a verb in place of “What”: “Fields of a host.”']],
    [
      'lib/a.ts',
      'const a = 1;\n/**\n * Whether it runs.\n */',
      ['3: begin with a noun or a verb in place of “Whether”: “True if the container runs.”'],
    ],
    ['lib/a.ts', '/** True if it runs: what it shows, and why. */\n/** Whatever it is. */', []],
    ['lib/a.ts', '// What follows is no doc comment.', []],
    ['docs/a.md', '/** What it has. */', []],
  ],
  names: [
    ['lib/a.ts', '/** As lib/b.ts does. */', ['1: lib/b.ts does not exist']],
    ['lib/a.ts', '// See gone.ts and `other.mjs`.', ['1: gone.ts does not exist', '1: other.mjs does not exist']],
    ['lib/a.ts', 'function found() {}\n// `found()` calls `lost(1)`.', ['2: lost does not exist']],
    ['lib/a.ts', '// See a.ts, lib/a.ts and ./a.ts; test/*.ts and <name>.ts are patterns.', []],
    ['docs/a.md', 'See `lib/b.ts`.', ['1: lib/b.ts does not exist']],
  ],
  casts: [
    ['lib/a.ts', 'const a = JSON.parse(text(1)) as Ask;', ['1: decode it by a schema in place of a cast']],
    ['lib/a.ts', 'const a = JSON.parse(text) as unknown;', []],
    ['lib/a.ts', '// JSON.parse(text) as Ask', []],
    ['dev/a.ts', 'const a = JSON.parse(text) as Ask;', ['1: decode it by a schema in place of a cast']],
    ['test/a.ts', 'const a = JSON.parse(text) as Ask;', []],
  ],
};

for (const [name, samples] of Object.entries(rows) as [RuleName, readonly Row[]][]) {
  t.test(`the rule of ${name} refuses its bad samples and nothing else`, (t) => {
    for (const [path, text, faults] of samples) {
      const found = rules[name]([{ path, text }]).map((fault) => fault.replace(prefix, ''));
      t.same(found, faults, text.slice(0, 60));
    }
    t.end();
  });
}
