/** Places where a house rule does not hold, and why. One file a line; the aim is none. */
export type RuleName = 'columns' | 'words' | 'openings' | 'names' | 'casts';

export const exceptions: Record<RuleName, Record<string, string>> = {
  columns: { 'cli/client/openapi.d.ts': 'it is generated' },
  words: {},
  openings: {},
  names: {},
  casts: {
    'dev/process/ledger.ts': 'the guard of each process reads it, and loads no library',
    'dev/servers/engine-api.ts': 'an engine that this tooling started answers its own questions',
  },
};

/** Names in prose that are not ours: files and functions of other projects. */
export const namesOfOthers: ReadonlySet<string> = new Set(['issuer.mjs', './a.ts']);
