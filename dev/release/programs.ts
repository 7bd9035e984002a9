/**
 * Packs the programs of a release into one archive: compiled JavaScript without comments and source
 * maps, laid out as in a checkout (`package.json`, `dist/<program>/…`). The upgrade test runs the
 * last release from it, and so needs neither the git history nor a second compile. The same commit
 * gives the same bytes.
 */
import { execFileSync } from 'node:child_process';
import { mkdirSync, readFileSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { Readable } from 'node:stream';
import { buffer } from 'node:stream/consumers';
import { gunzipSync, gzipSync } from 'node:zlib';
import { extract, pack } from 'tar-stream';
import ts from 'typescript';

/** The folders that the programs consist of. */
const rooms = ['schemas', 'lib', 'gateway', 'actors', 'host-agent'];

const archiveBytesMax = 64 * 1024 * 1024;

/** The files of a tar archive, by path. */
async function filesOf(tar: Buffer): Promise<Map<string, Buffer>> {
  const files = new Map<string, Buffer>();
  const entries = Readable.from([tar]).pipe(extract());
  for await (const entry of entries) {
    const content = await buffer(entry);
    if (entry.header.type === 'file') files.set(entry.header.name, content);
  }
  return files;
}

/**
 * Strips types and comments of one file. Types are not checked: the commit passed its own type
 * check.
 */
const compile = (source: string, fileName: string): string =>
  ts.transpileModule(source, {
    fileName,
    compilerOptions: {
      target: ts.ScriptTarget.ES2023,
      module: ts.ModuleKind.ESNext,
      newLine: ts.NewLineKind.LineFeed,
      removeComments: true,
      rewriteRelativeImportExtensions: true,
      verbatimModuleSyntax: true,
    },
  }).outputText;

/** Packs the programs as they are in this commit. */
export async function packPrograms(repository: string, commit: string): Promise<Buffer> {
  const args = ['archive', '--format=tar', commit, 'package.json', ...rooms];
  const tar = execFileSync('git', args, { cwd: repository, maxBuffer: archiveBytesMax });
  const archive = pack();
  const files = [...(await filesOf(tar))].sort(([left], [right]) => (left < right ? -1 : 1));
  for (const [path, content] of files) {
    const isSource = path.endsWith('.ts');
    const name = isSource ? `dist/${path.replace(/\.ts$/, '.js')}` : path;
    const bytes = isSource ? Buffer.from(compile(content.toString(), path)) : content;
    archive.entry({ name, mtime: new Date(0), mode: 0o644 }, bytes);
  }
  archive.finalize();
  const zipped = gzipSync(await buffer(archive), { level: 9 });
  // The last byte of the gzip header names the operating system; 255 means unknown.
  zipped[9] = 255;
  return zipped;
}

/** Unpacks an archive of `packPrograms`. The folder appears only when it is complete. */
export async function unpackPrograms(archive: string, folder: string): Promise<void> {
  const files = await filesOf(gunzipSync(readFileSync(archive), { maxOutputLength: archiveBytesMax }));
  const partial = `${folder}.${process.pid}`;
  for (const [path, content] of files) {
    mkdirSync(dirname(join(partial, path)), { recursive: true });
    writeFileSync(join(partial, path), content);
  }
  rmSync(folder, { recursive: true, force: true });
  renameSync(partial, folder);
}
