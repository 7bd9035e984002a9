/**
 * Removes what an image does not run: the tools that compile, and uWebSockets.js for other
 * platforms and other versions of Node, 125 MB in all.
 */
import { readdirSync, rmSync } from 'node:fs';
import { join } from 'node:path';

const packages = 'node_modules';
for (const name of ['@esbuild', 'esbuild', 'es-module-lexer', '.bin', '.package-lock.json']) {
  rmSync(join(packages, name), { recursive: true, force: true });
}
const binaries = join(packages, 'uWebSockets.js/dist/bin');
const own = `uws_${process.platform}_${process.arch}_${process.versions.modules}.node`;
for (const name of readdirSync(binaries)) {
  if (name !== own) rmSync(join(binaries, name));
}
