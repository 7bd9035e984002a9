/** A Prometheus that scrapes the programs of a rig as deploy/prometheus/prometheus.yml says. */
import { mkdirSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import type { Test } from 'tap';
import { parse } from 'yaml';
import { executablesOf, toolHere } from '../../../../dev/fetch/tools.ts';
import { repositoryRoot } from '../../../../dev/paths.ts';
import { freePort, startServer } from '../../../../dev/process/process.ts';

const deadlineMs = 60_000;

interface Job {
  readonly job_name: string;
  readonly metrics_path?: string;
}

/** Result of a query, or the reason of its refusal. */
export type Answer<T> = { readonly status: 'success'; readonly data: T } | { readonly status: 'error'; error: string };

export interface Series {
  readonly metric: Readonly<Record<string, string>>;
}

export interface Prometheus {
  /** The values of a query over the last seconds, one a second. */
  range(expr: string, seconds: number): Promise<Answer<{ readonly result: readonly Series[] }>>;
  /** All names of metrics that it has scraped. */
  names(): Promise<ReadonlySet<string>>;
}

/** @param targets the `host:port` of each job; jobs without one are left out */
export async function startPrometheus(
  t: Test,
  folder: string,
  targets: Readonly<Record<string, string>>,
): Promise<Prometheus> {
  const { env } = await toolHere('promtool');
  const [program] = executablesOf(['prometheus'], env);
  if (program === undefined) throw new Error('there is no prometheus beside promtool');
  mkdirSync(folder, { recursive: true });
  const sample = readFileSync(join(repositoryRoot, 'deploy/prometheus/prometheus.yml'), 'utf8');
  const { scrape_configs: jobs } = parse(sample) as { readonly scrape_configs: readonly Job[] };
  const config = {
    global: { scrape_interval: '1s' },
    scrape_configs: jobs.map(({ job_name, metrics_path }) => ({
      job_name,
      ...(metrics_path === undefined ? {} : { metrics_path }),
      static_configs: [{ targets: [targets[job_name] ?? `no target for ${job_name}`] }],
    })),
  };
  const configFile = join(folder, 'prometheus.json');
  writeFileSync(configFile, JSON.stringify(config));
  const port = await freePort();
  const base = `http://127.0.0.1:${port}`;
  const server = await startServer({
    name: 'prometheus',
    command: program,
    args: [
      `--config.file=${configFile}`,
      `--storage.tsdb.path=${join(folder, 'data')}`,
      `--web.listen-address=127.0.0.1:${port}`,
    ],
    env,
    cwd: folder,
    logFile: join(folder, 'prometheus.log'),
    ready: async (signal) => (await fetch(`${base}/-/ready`, { signal })).ok,
    readyDeadlineMs: deadlineMs,
    stopGraceMs: 10_000,
  });
  t.teardown(() => server.stop());
  const ask = async <T>(path: string, query: Record<string, string>): Promise<T> => {
    const url = `${base}/api/v1/${path}?${new URLSearchParams(query).toString()}`;
    return (await (await fetch(url, { signal: AbortSignal.timeout(deadlineMs) })).json()) as T;
  };
  return {
    range: (expr, seconds) => {
      const end = Date.now() / 1000;
      return ask('query_range', { query: expr, start: String(end - seconds), end: String(end), step: '1' });
    },
    names: async () => new Set((await ask<{ data: string[] }>('label/__name__/values', {})).data),
  };
}
