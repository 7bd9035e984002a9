/** Checks metrics with `promtool check metrics`, and tries the alerts of deploy/ on them. */
import { spawnSync } from 'node:child_process';
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { repositoryRoot } from '../../../dev/paths.ts';
import { toolHere } from '../../../dev/fetch/tools.ts';

async function promtool(args: readonly string[], input = ''): Promise<{ readonly isGood: boolean; text: string }> {
  const { path, env } = await toolHere('promtool');
  const { status, stdout, stderr, error } = spawnSync(path, args, {
    input,
    env: { ...process.env, ...env },
    encoding: 'utf8',
    timeout: 30_000,
  });
  if (error !== undefined) throw error;
  return { isGood: status === 0, text: `${stdout}${stderr}${status === 0 ? '' : `exit ${status}`}` };
}

/** The findings of promtool; empty if it has none. */
export async function promtoolFindings(scrape: string): Promise<string> {
  return (await promtool(['check', 'metrics'], scrape)).text;
}

const samplesIn = (scrape: string): Map<string, string> =>
  new Map(
    [...scrape.matchAll(/^(\w+)(?:\{(.*)\})? (\S+)$/gm)].map(([, name, labels = '', value = '']) => [
      `${name}{${labels === '' ? '' : `${labels},`}instance="one:9101",job="longshore-actors"}`,
      value,
    ]),
  );

/**
 * The alerts of deploy/ that fire when a process shows the second scrape for ten minutes, after it
 * had shown the first.
 */
export async function alertsOn(before: string, after: string): Promise<readonly string[]> {
  const rules = join(repositoryRoot, 'deploy/prometheus/alerts.yml');
  const names = [...readFileSync(rules, 'utf8').matchAll(/- alert: (\w+)/g)].map(([, name]) => name);
  const earlier = samplesIn(before);
  const series = [...samplesIn(after)].map(([name, value]) => ({
    series: name,
    values: `${earlier.get(name) ?? '_'}x4 ${value}x10`,
  }));
  const trial = {
    rule_files: [rules],
    evaluation_interval: '1m',
    tests: [
      {
        interval: '1m',
        input_series: series,
        // Expecting none, promtool names each that fires.
        alert_rule_test: names.map((alertname) => ({ eval_time: '14m', alertname, exp_alerts: [] })),
      },
    ],
  };
  const folder = mkdtempSync(join(tmpdir(), 'longshore-alerts-'));
  try {
    const file = join(folder, 'trial.json');
    writeFileSync(file, JSON.stringify(trial));
    const { isGood, text } = await promtool(['test', 'rules', file]);
    const firing = [...text.matchAll(/alertname: (\w+), time:/g)].map(([, name = '']) => name);
    if (!isGood && firing.length === 0) throw new Error(text);
    return firing;
  } finally {
    rmSync(folder, { recursive: true, force: true });
  }
}
