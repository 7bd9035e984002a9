/**
 * Compiles TypeScript to dist/: strips the types, which takes a few seconds and needs no compiler.
 * `npm run check` reports what tsc says of the types.
 */
import {
  chmodSync,
  existsSync,
  mkdirSync,
  readdirSync,
  readFileSync,
  renameSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs';
import { dirname, join, relative, sep } from 'node:path';
import { bundlePrograms } from './bundle.mjs';
import { fail, modifiedMs, root, say, seconds } from './run.mjs';

const programs = ['schemas', 'lib', 'gateway', 'actors', 'host-agent', 'cli', 'ops', 'dev'];
const tests = ['bench', 'test'];

/** Compiles what `npm start` and a production machine run. */
export const compilePrograms = () => compile(programs);

export const compileAll = () => compile([...programs, ...tests]);

async function compile(rooms) {
  const startMs = performance.now();
  const count = await stripTypes(rooms);
  markExecutable();
  if (count > 0) say(`· ${count} files compiled … ${seconds(startMs)}`);
  await bundlePrograms();
}

/** `npx longshore` runs the file itself, and so does a link to the command line alone. */
function markExecutable() {
  for (const file of ['dev/longshore.js', 'cli/longshore.js']) chmodSync(join(root, 'dist', file), 0o755);
}

/** Links bench/node_modules into dist/bench/, where Node looks for what the peers import. */
export function linkBenchPackages() {
  const link = join(root, 'dist/bench/node_modules');
  if (!existsSync(link)) symlinkSync('../../bench/node_modules', link);
}

const sourcesIn = (room) =>
  readdirSync(join(root, room), { recursive: true, encoding: 'utf8' })
    .filter((path) => path.endsWith('.ts') && !path.endsWith('.d.ts') && !path.split(sep).includes('node_modules'))
    .map((path) => join(room, path));

const outputOf = (source) => join('dist', source.replace(/\.ts$/, '.js'));

const typesStripped = {
  loader: 'ts',
  format: 'esm',
  target: 'es2023',
  sourcemap: 'external',
  sourcesContent: false,
  tsconfigRaw: { compilerOptions: { verbatimModuleSyntax: true } },
};

/** Strips the types of outdated files; returns how many there were. */
async function stripTypes(rooms) {
  const toolMs = modifiedMs('dev/build/compile.mjs');
  const stale = rooms
    .flatMap(sourcesIn)
    .filter((source) => modifiedMs(outputOf(source)) < Math.max(toolMs, modifiedMs(source)));
  if (stale.length === 0) return 0;
  const [{ transformSync }, { init, parse }] = await Promise.all([import('esbuild'), import('es-module-lexer')]);
  await init();
  for (const source of stale) {
    const output = outputOf(source);
    const { code, map } = stripped(transformSync, source, relative(dirname(output), source));
    mkdirSync(join(root, dirname(output)), { recursive: true });
    write(`${output}.map`, map);
    write(output, `${withJsImports(code, parse)}\n//# sourceMappingURL=${output.split('/').at(-1)}.map\n`);
  }
  return stale.length;
}

/**
 * Strips the types of one file. If the file is invalid, prints its name and line and ends the
 * command.
 */
function stripped(transformSync, source, filename) {
  try {
    const text = readFileSync(join(root, source), 'utf8');
    return transformSync(text, { ...typesStripped, sourcefile: filename });
  } catch (error) {
    return fail(`${source}: ${error.message ?? ''}`);
  }
}

/**
 * Rewrites imports of `./a.ts` to `./a.js`. The length does not change, so the source map stays
 * valid.
 */
function withJsImports(code, parse) {
  const [imports] = parse(code);
  let text = '';
  let at = 0;
  for (const { specifier, end } of imports) {
    if (specifier === null || !/^\.\.?\/.*\.ts$/.test(specifier)) continue;
    const extension = code.lastIndexOf('.ts', end);
    text += `${code.slice(at, extension)}.js`;
    at = extension + '.ts'.length;
  }
  return text + code.slice(at);
}

/**
 * Replaces the file atomically, so that neither an interrupted start nor two at the same time leave
 * half a file.
 */
function write(path, text) {
  const temporary = join(root, `${path}.${process.pid}`);
  writeFileSync(temporary, text);
  renameSync(temporary, join(root, path));
}
