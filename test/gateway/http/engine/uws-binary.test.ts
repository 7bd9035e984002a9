/**
 * The binary of uWebSockets.js that is loaded is the reviewed one: pins, lock file, ADR 5 and the
 * installed package agree.
 */
import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import t from 'tap';
import { repositoryRoot } from '../../../../dev/paths.ts';
import { loadUws, ownBinary, packageOf, pinnedBinaries } from '../../../../gateway/http/engine/uws-binary.ts';

const read = (path: string): string => readFileSync(join(repositoryRoot, path), 'utf8');

t.test('each pin is of a package in the lock file, and ADR 5 says where it is from', (t) => {
  const page = read('docs/adr/0005-uwebsockets.md');
  const { packages } = JSON.parse(read('package-lock.json')) as {
    packages: Record<string, { version: string; integrity: string }>;
  };
  for (const [own, { release, sha256 }] of Object.entries(pinnedBinaries)) {
    const locked = packages[`node_modules/${packageOf(own)}`];
    t.equal(locked?.version, release, own);
    t.ok(page.includes(`| \`${own}\` | ${release} | \`${sha256}\` |`), `ADR 5 has ${own}`);
  }
  const listed = page.match(/^\| `[\w-]+` \| [\d.]+ \| `[0-9a-f]{64}` \|$/gm) ?? [];
  t.equal(listed.length, Object.keys(pinnedBinaries).length, 'and no other');
  const { optionalDependencies } = JSON.parse(read('package.json')) as { optionalDependencies: Record<string, string> };
  const pinned = Object.entries(pinnedBinaries).map(([own, { release }]) => [packageOf(own), release]);
  t.same(optionalDependencies, Object.fromEntries(pinned));
  t.end();
});

t.test('a binary that is not there, not known or not the pinned one is not run', (t) => {
  const own = ownBinary();
  const refused = (why: RegExp) => ({ ok: false, why });
  const other = { release: '0.0.0', sha256: '0'.repeat(64), readsFreedMemory: false };
  t.match(loadUws({ [own]: other }), refused(/the binary of @uwsjs\/\S+ is not the pinned one; node:http serves/));
  t.match(loadUws({}), refused(/^uWebSockets.js has no binary for \S+ that we know; node:http serves/));
  t.match(loadUws({ 'plan9-x64-20': other }, 'plan9-x64-20'), refused(/is not installed: run npm ci with Node/));
  t.end();
});
