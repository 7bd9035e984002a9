/**
 * Packs the command line alone, as npm installs it: the compiled files that `cli/longshore.ts`
 * imports, and the packages that these import, with the versions of the root's package.json. The
 * same files give the same bytes.
 */
import { readFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { buffer } from 'node:stream/consumers';
import { gzipSync } from 'node:zlib';
import { parse } from 'es-module-lexer';
import { pack } from 'tar-stream';
import Type from 'typebox';
import { decoder } from '../../lib/decode.ts';
import { readJsonFile } from '../json-file.ts';

const decodeManifest = decoder(
  Type.Object({
    name: Type.String(),
    version: Type.String(),
    description: Type.String(),
    license: Type.String(),
    engines: Type.Object({ node: Type.String() }),
    dependencies: Type.Record(Type.String(), Type.String()),
  }),
);

const entry = 'dist/cli/longshore.js';

/** `@scope/name/file` → `@scope/name`; `name/file` → `name` */
const packageOf = (specifier: string): string => specifier.split('/', specifier.startsWith('@') ? 2 : 1).join('/');

interface Reached {
  /** Paths from the root of the repository. */
  readonly files: readonly string[];
  readonly packages: readonly string[];
}

/** Imports of the compiled command, at its start or later. */
function reachedFrom(repository: string): Reached {
  const files = new Set([entry]);
  const packages = new Set<string>();
  // A set also yields what is added while it is read.
  for (const file of files) {
    for (const { specifier } of parse(readFileSync(join(repository, file), 'utf8'))[0]) {
      if (typeof specifier !== 'string' || specifier.startsWith('node:')) continue;
      if (!specifier.startsWith('.')) {
        packages.add(packageOf(specifier));
        continue;
      }
      files.add(join(dirname(file), specifier));
    }
  }
  return { files: [...files].sort(), packages: [...packages].sort() };
}

export interface CommandPackage {
  /** `<name>-<version>.tgz`, as `npm pack` names it. */
  readonly fileName: string;
  readonly archive: Buffer;
}

/** Packs the command as it is compiled in `dist/`. */
export async function packCommand(repository: string): Promise<CommandPackage> {
  const root = readJsonFile(join(repository, 'package.json'), decodeManifest, 'restore it');
  const { files, packages } = reachedFrom(repository);
  const versionOf = (name: string): string => {
    const version = root.dependencies[name];
    if (version === undefined) throw new Error(`the command imports ${name}, which package.json does not depend on`);
    return version;
  };
  const { name, version, description, license, engines } = root;
  const manifest = {
    name,
    version,
    description,
    private: true,
    type: 'module',
    license,
    bin: { longshore: entry },
    engines,
    dependencies: Object.fromEntries(packages.map((one) => [one, versionOf(one)])),
  };
  const archive = pack();
  const add = (path: string, content: string | Buffer): void => {
    const mode = path === entry ? 0o755 : 0o644;
    archive.entry({ name: `package/${path}`, mtime: new Date(0), mode }, content);
  };
  add('package.json', `${JSON.stringify(manifest, undefined, 2)}\n`);
  for (const file of files) add(file, readFileSync(join(repository, file)));
  archive.finalize();
  return { fileName: `${name}-${version}.tgz`, archive: gzipSync(await buffer(archive), { level: 9 }) };
}
