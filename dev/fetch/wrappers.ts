/** Puts fetched tools on the PATH of a program, with the libraries that they were fetched with. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { delimiter, join } from 'node:path';
import type { ServerTool } from './tools.ts';

const quoted = (text: string): string => `'${text.replaceAll("'", `'\\''`)}'`;

/** Writes a script for each tool to `folder`, and returns a PATH that begins with it. */
export function pathWith(folder: string, tools: Readonly<Record<string, ServerTool>>, pathBefore: string): string {
  mkdirSync(folder, { recursive: true });
  for (const [name, { path, env }] of Object.entries(tools)) {
    const libraries = env['LD_LIBRARY_PATH'];
    const set = libraries === undefined ? '' : `LD_LIBRARY_PATH=${quoted(libraries)} `;
    writeFileSync(join(folder, name), `#!/bin/sh\n${set}exec ${quoted(path)} "$@"\n`, { mode: 0o755 });
  }
  return [folder, pathBefore].join(delimiter);
}
