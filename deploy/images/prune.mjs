/** Removes the tools that compile, which an image does not run. */
import { rmSync } from 'node:fs';
import { join } from 'node:path';

const packages = 'node_modules';
for (const name of ['@esbuild', 'esbuild', 'es-module-lexer', '.bin', '.package-lock.json']) {
  rmSync(join(packages, name), { recursive: true, force: true });
}
