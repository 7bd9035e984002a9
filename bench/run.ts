/**
 * `npm run bench` compares Longshore with what people would use instead. The load generator runs on
 * the same machine. Systems are measured in turn, so that other work on the machine affects all.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { availableParallelism, cpus, totalmem } from 'node:os';
import { join } from 'node:path';
import { parseArgs } from 'node:util';
import { cacheFolder, shortTemporaryRoot } from '../dev/paths.ts';
import { say } from '../dev/steps.ts';
import { findTool } from '../dev/fetch/tools.ts';
import { writeResults } from './report.ts';
import { show } from './table.ts';
import type { Bench, Section } from './section.ts';
import { api } from './api/api.ts';
import { docker } from './docker/docker.ts';
import { fleet } from './fleet/fleet.ts';
import { million } from './fleet/million.ts';
import { network } from './network/network.ts';
import { growth } from './growth/growth.ts';
import { logs } from './logs/logs.ts';
import { vpn } from './vpn.ts';
import { work } from './work.ts';

const sections: readonly Section[] = [api, docker, fleet, growth, logs, million, network, vpn, work];

const usage = `usage: npm run bench -- [options]
  --only a,b   runs only these sections: ${sections.map(({ name }) => name).join(', ')}
  --short      shows that everything works; the figures mean little
  --largest n  limits the containers of a fleet; default: 1000000
  --write      writes the results into docs/performance.md`;

const { values } = parseArgs({
  options: {
    only: { type: 'string' },
    short: { type: 'boolean', default: false },
    largest: { type: 'string', default: '1000000' },
    write: { type: 'boolean', default: false },
    help: { type: 'boolean', default: false },
  },
});

function chosenSections(): Section[] {
  const names = values.only?.split(',') ?? sections.map(({ name }) => name);
  return names.map((name) => {
    const section = sections.find((one) => one.name === name);
    if (section === undefined) throw new Error(`there is no section "${name}"\n${usage}`);
    return section;
  });
}

async function runSection(section: Section, signal: AbortSignal, env: NodeJS.ProcessEnv): Promise<void> {
  const folder = mkdtempSync(join(shortTemporaryRoot(), 'lb-'));
  const bench: Bench = {
    env,
    folder,
    signal,
    isShort: values.short,
    largestFleet: Number(values.largest),
    tool: (name) => findTool(name, { env, cacheFolder: cacheFolder(env), report: (what) => say(`· ${what} …`) }),
  };
  try {
    const results = await section.run(bench);
    for (const table of results.tables) show(table);
    if (values.write) writeResults(section.name, results);
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}

async function main(env: NodeJS.ProcessEnv): Promise<void> {
  if (values.help) {
    say(usage);
    return;
  }
  const stopping = new AbortController();
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.on(signal, () => stopping.abort());
  say(
    `${availableParallelism()} cores (${cpus()[0]?.model}), ${(totalmem() / 1024 ** 3).toFixed(0)} GiB, Node ${process.version}`,
  );
  for (const section of chosenSections()) {
    stopping.signal.throwIfAborted();
    say(`\n=== ${section.name}`);
    await runSection(section, stopping.signal, env);
  }
}

await main(process.env);
process.exit(0);
