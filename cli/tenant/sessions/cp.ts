/** `cp`: one file into a container, or out of it, by programs of its image. */
import { createHash, randomBytes } from 'node:crypto';
import { createReadStream, createWriteStream, statSync } from 'node:fs';
import { rename, rm } from 'node:fs/promises';
import { basename, join, posix } from 'node:path';
import { Transform, Writable, type Readable } from 'node:stream';
import { finished } from 'node:stream/promises';
import { oneLine } from '../../../schemas/visible.ts';
import type { Context } from '../../context.ts';
import { Refused, WrongUsage } from '../../terminal/errors.ts';
import { unreadable } from '../../terminal/input.ts';
import { bytesText } from '../../terminal/quantities.ts';
import { findContainer } from '../find.ts';
import { runProgram, type Ended } from './program.ts';

interface Place {
  readonly container: string;
  readonly path: string;
}

/** Splits `web:/etc/motd`; `undefined` for a file of this machine, such as `./a:b` or `-`. */
export function placeIn(text: string): Place | undefined {
  const [, container, path] = /^([A-Za-z0-9][A-Za-z0-9_.-]*):(.+)$/s.exec(text) ?? [];
  return container === undefined || path === undefined ? undefined : { container, path };
}

/** The path is an argument, not part of the script. In a folder, the file keeps its name. */
const intoScript = `
to=$1
if [ -d "$to" ]; then to=\${to%/}/$2; fi
cat > "$to" || exit
if command -v sha256sum > /dev/null; then sha256sum < "$to"; else echo unknown; fi`;

/** The sum comes first, in a line of its own. */
const outOfScript = `
if [ -d "$1" ]; then echo "$1 is a folder" >&2; exit 1; fi
if [ ! -r "$1" ]; then cat "$1"; exit 1; fi
if command -v sha256sum > /dev/null; then sha256sum < "$1" || exit; else echo unknown; fi
cat "$1"`;

/** Programs whose absence ends a copy. */
const missing = /(?:^|\s)'?(cat|sh)'?: (?:command )?not found|no such program/;

function refusal(name: string, { code, errors }: Ended): Refused {
  const [, program = 'sh'] = missing.exec(errors) ?? [];
  if (code === 127 || (code === 126 && missing.test(errors)))
    return new Refused(
      `the image of ${name} has no ${program}, by which cp copies: bring the file with an image or a secret`,
    );
  const why = errors.trim().split('\n').at(-1) ?? '';
  return new Refused(
    `nothing was copied: ${why === '' ? `exit code ${code}` : oneLine(why.replace(/^sh: (?:line )?(?:\d+: )?/, ''))}`,
  );
}

/** Compares the checksums of both ends; an image may lack a program for it. */
function compare({ tell }: Context, name: string, here: string, there: string): void {
  const [sum = ''] = there.trim().split(/\s/);
  if (sum === here) return;
  if (sum === 'unknown') return tell(`the image of ${name} has no sha256sum: the copy is not checked`);
  throw new Refused('the copy is not what was sent: the file was changed meanwhile, or was cut; copy it again');
}

/** Passes bytes on, and computes their checksum. */
function summing() {
  const [hash, count] = [createHash('sha256'), { bytes: 0 }];
  const stream = new Transform({
    transform: (chunk: Buffer, _encoding, done) => {
      hash.update(chunk);
      count.bytes += chunk.length;
      done(null, chunk);
    },
  });
  return { stream, count, sum: () => hash.digest('hex') };
}

function collecting() {
  const chunks: Buffer[] = [];
  const stream = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      chunks.push(chunk);
      done();
    },
  });
  return { stream, text: () => Buffer.concat(chunks).toString() };
}

function sourceOf({ terminal }: Context, path: string): Readable {
  if (path === '-') return terminal.stdin;
  try {
    if (statSync(path).isDirectory()) throw new Refused(`${path} is a folder: cp copies one file`);
  } catch (error) {
    throw error instanceof Refused ? error : unreadable(path, error);
  }
  return createReadStream(path);
}

async function into(context: Context, from: string, { container, path }: Place): Promise<void> {
  const source = sourceOf(context, from);
  const { id, name } = await findContainer(context, container);
  const [sums, said] = [summing(), collecting()];
  source.once('error', (error) => sums.stream.destroy(unreadable(from, error)));
  const as = from === '-' ? 'stdin' : basename(from);
  const command = ['sh', '-c', intoScript, 'sh', path, as];
  const ended = await runProgram(context, id, command, { input: source.pipe(sums.stream), output: said.stream });
  if (ended.code !== 0) throw refusal(name, ended);
  compare(context, name, sums.sum(), said.text());
  context.show(
    { from, to: `${name}:${path}`, bytes: sums.count.bytes },
    `${bytesText(sums.count.bytes)} to ${name}:${path}`,
  );
}

/** Splits the first line from what follows it. */
function headed(to: Writable) {
  let [head, isBody] = ['', false];
  const stream = new Transform({
    transform: (chunk: Buffer, _encoding, done) => {
      if (isBody) return done(null, chunk);
      const at = chunk.indexOf(0x0a);
      head += chunk.subarray(0, at < 0 ? chunk.length : at).toString();
      isBody = at >= 0;
      done(null, isBody ? chunk.subarray(at + 1) : undefined);
    },
  });
  stream.pipe(to);
  return { stream, line: () => head };
}

/** Standard output, which a terminal gets as text. */
const shownBy = ({ terminal: { stdout } }: Context): Writable =>
  new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      stdout.writeFile(chunk);
      done();
    },
  });

const isFolder = (path: string): boolean => statSync(path, { throwIfNoEntry: false })?.isDirectory() === true;

async function outOf(context: Context, { container, path }: Place, to: string): Promise<void> {
  const { id, name } = await findContainer(context, container);
  const target = to !== '-' && isFolder(to) ? join(to, posix.basename(path)) : to;
  const part = `${target}.${randomBytes(3).toString('hex')}.part`;
  const sums = summing();
  const file = target === '-' ? undefined : createWriteStream(part, { flags: 'wx' });
  sums.stream.pipe(file ?? shownBy(context));
  const head = headed(sums.stream);
  file?.once('error', (error) => head.stream.destroy(new Refused(`${target} can't be written: ${error.message}`)));
  try {
    const ended = await runProgram(context, id, ['sh', '-c', outOfScript, 'sh', path], { output: head.stream });
    head.stream.end();
    await finished(file ?? sums.stream);
    if (ended.code !== 0) throw refusal(name, ended);
    compare(context, name, sums.sum(), head.line());
    if (file === undefined) return;
    await rename(part, target);
  } catch (error) {
    await rm(part, { force: true });
    throw error;
  }
  context.show(
    { from: `${name}:${path}`, to: target, bytes: sums.count.bytes },
    `${bytesText(sums.count.bytes)} to ${target}`,
  );
}

export async function cp(context: Context, from: string, to: string): Promise<void> {
  const [source, target] = [placeIn(from), placeIn(to)];
  if (source === undefined && target !== undefined) return into(context, from, target);
  if (source !== undefined && target === undefined) return outOf(context, source, to);
  throw new WrongUsage(
    'give a file and a CONTAINER:PATH, in one order or the other, such as: longshore cp web:/etc/motd .',
  );
}
