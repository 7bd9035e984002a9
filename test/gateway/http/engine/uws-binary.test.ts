/**
 * What is loaded of uWebSockets.js is what was looked at: pins, lockfile, ADR 5 and the installed
 * package agree.
 */
import { createHash } from 'node:crypto';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import t from 'tap';
import { repositoryRoot } from '../../../../dev/paths.ts';
import { loadUws, pinnedBinaries, pinnedModules, uwsPackage } from '../../../../gateway/http/engine/uws-binary.ts';

const read = (path: string): string => readFileSync(join(repositoryRoot, path), 'utf8');
const sumOf = (path: string): string =>
  createHash('sha256')
    .update(readFileSync(fileURLToPath(new URL(path, uwsPackage()))))
    .digest('hex');

t.test('every pinned file is what the package holds', (t) => {
  for (const [machine, sum] of Object.entries(pinnedBinaries)) t.equal(sumOf(`dist/bin/uws_${machine}.node`), sum);
  for (const [path, sum] of Object.entries(pinnedModules)) t.equal(sumOf(path), sum, path);
  t.end();
});

t.test('ADR 5 says where they are from', (t) => {
  const page = read('docs/adr/0005-uwebsockets.md');
  const listed = [...page.matchAll(/^\| `(\w+)` \| `([0-9a-f]{64})` \|$/gm)].map(([, name = '', sum = '']) => [
    name,
    sum,
  ]);
  t.same(Object.fromEntries(listed), pinnedBinaries);
  const lock = JSON.parse(read('package-lock.json')) as {
    packages: Record<string, { name: string; version: string; integrity: string }>;
  };
  const { name, version, integrity } = lock.packages['node_modules/uWebSockets.js']!;
  for (const told of [`\`${name}\` ${version}`, integrity]) t.ok(page.includes(told), told);
  t.end();
});

t.test('another binary, or another module that loads it, is not run', async (t) => {
  const machine = `${process.platform}_${process.arch}_${process.versions.modules}`;
  t.match(await loadUws({ [machine]: '0'.repeat(64) }), { ok: false, why: /binary .* is not the pinned one/ });
  t.match(await loadUws({}), { ok: false, why: /has no binary for Node .*HTTP_ENGINE=node/ });
  t.match(await loadUws(pinnedBinaries, { 'dist/uws.mjs': '0'.repeat(64) }), {
    ok: false,
    why: /dist\/uws.mjs is not the pinned one/,
  });
  t.match(await loadUws(), { ok: true });
});
