/**
 * The kind of each test file, which says what it needs and when it runs. CONTRIBUTING.md tells what
 * each kind proves and how long it takes.
 */

export const kinds = ['fast', 'contract', 'server', 'destructive', 'nightly', 'house'] as const;

/**
 * - `fast`: single source files. No server, nothing fetched; many files in one process.
 * - `contract`: parts in the process of the test, on servers that its worker starts once.
 * - `server`: real servers and programs, which nobody kills. Takes turns in `.ci/run`.
 * - `destructive`: processes killed, disks filled, networks cut, servers damaged. Takes turns, too.
 * - `nightly`: what costs minutes and changes rarely, or what a cheaper test proves nearly as well.
 * - `house`: the rules of the code; a part of `npm run check`.
 */
export type Kind = (typeof kinds)[number];

/** The start of a path below test/, and its kind. The longest one that fits counts. */
export const kindTable: readonly (readonly [start: string, Kind])[] = [
  ['', 'fast'],
  ['attacks/', 'server'],
  ['attacks/containers/disk-fill', 'destructive'],
  ['attacks/http/', 'contract'],
  ['attacks/http/half-sent-bodies', 'server'],
  ['attacks/http/protocol-forms', 'server'],
  ['attacks/tokens/', 'contract'],
  ['attacks/vpn/one-time-links', 'contract'],
  ['attacks/vpn/rotated-peer', 'contract'],
  ['cli/completion/shells', 'server'],
  ['dev/', 'server'],
  ['e2e/', 'server'],
  ['e2e/api/', 'contract'],
  ['e2e/api/settled', 'server'],
  ['e2e/cli/longshore', 'contract'],
  ['e2e/control-plane/', 'destructive'],
  ['e2e/control-plane/backup', 'nightly'],
  ['e2e/control-plane/chaos', 'nightly'],
  ['e2e/control-plane/rolling', 'nightly'],
  ['e2e/deploy/', 'nightly'],
  ['e2e/hosts/', 'destructive'],
  ['e2e/isolated-server/', 'nightly'],
  ['e2e/isolated-server/agent', 'destructive'],
  ['e2e/network/', 'destructive'],
  ['e2e/start/node-', 'nightly'],
  ['e2e/start/ports', 'nightly'],
  ['e2e/start/supervised', 'nightly'],
  ['gateway/vpn/pki/pool', 'server'],
  ['house/', 'house'],
  ['integration/', 'server'],
  ['integration/actors/', 'destructive'],
  ['integration/bench/', 'nightly'],
  ['integration/cli/package', 'nightly'],
  ['integration/clients/', 'nightly'],
  ['integration/dev/', 'nightly'],
  ['integration/gateway/', 'contract'],
  ['integration/gateway/process', 'server'],
  ['integration/gateway/subject-reader', 'server'],
  ['integration/gateway/vpn/pkcs12', 'nightly'],
  ['integration/host-agent/link/', 'destructive'],
  ['integration/host-agent/disk/', 'destructive'],
  ['integration/host-agent/docker/', 'destructive'],
  ['integration/host-agent/sandbox/', 'destructive'],
  ['integration/sessions/', 'contract'],
  ['sim/', 'server'],
  ['support/runner/batches', 'nightly'],
  ['support/runner/processes', 'nightly'],
  ['upgrade/', 'destructive'],
];

/** Kinds whose files take turns in `.ci/run`: each commit has some, and the next one others. */
export const takingTurns: readonly Kind[] = ['server', 'destructive'];

/** The simulation takes turns by itself: each commit has other seeds. */
export const simulation = 'sim/simulation';

/** Whole journeys through the product, which `npm test` runs beside `fast` and `contract`. */
export const journeys: readonly string[] = [
  'e2e/start/start',
  'e2e/vpn/wireguard',
  'integration/actors/cluster',
  'integration/host-agent/reconcile/running',
];

/** @param path of a test file, such as `test/lib/time/slices.test.ts` or its compiled file */
export function kindOf(path: string): Kind {
  const name = nameOf(path);
  const rows = kindTable.filter(([start]) => name.startsWith(start));
  return rows.reduce((longest, row) => (row[0].length > longest[0].length ? row : longest))[1];
}

/** The path below test/, without its ending: `lib/time/slices`. */
export const nameOf = (path: string): string =>
  path.replace(/^(\.\/)?(dist\/)?test\//, '').replace(/\.test\.(ts|js)$/, '');
