/**
 * Declares the demo container of `npm start` through the API, as a tenant would, and prints what
 * became of it.
 */
import { sleep } from '../../lib/time/backoff.ts';
import type { Container, ContainerStatusView } from '../../schemas/api/container.ts';
import type { Api } from '../api.ts';
import { say } from '../steps.ts';
import type { Stack } from '../stack/stack.ts';

const runningDeadlineMs = 60_000;
const logsDeadlineMs = 10_000;
const pageDeadlineMs = 2_000;
const pollMs = 100;
export const demoName = 'demo';

/** Returns the container of an earlier start, or creates one. */
export async function declareDemo({ api, image, tokens }: Stack, name = demoName): Promise<Container> {
  const { token } = tokens.tenants.demo;
  const known = await api.containerNamed(token, name);
  return (
    known ??
    api.create(token, {
      name,
      ...image,
      ports: [8080],
      env: { GREETING: 'welcome aboard' },
      cpu_limit: '0.25',
      mem_limit: '64m',
    })
  );
}

/** The status may date from before this start, so this asks the page itself. */
async function pageAnswers({ addresses }: ContainerStatusView): Promise<boolean> {
  const [published] = addresses;
  if (published === undefined) return false;
  return fetch(`http://${published.address}/`, { signal: AbortSignal.timeout(pageDeadlineMs) }).then(
    (answer) => answer.ok,
    () => false,
  );
}

/**
 * Waits until the container runs and serves its page. A container that its tenant stopped stays
 * stopped; that too ends the wait.
 * @throws Error if the container fails, or after a deadline; the message contains the last status.
 */
export async function demoSettled(
  api: Api,
  token: string,
  id: string,
  signal: AbortSignal,
): Promise<ContainerStatusView> {
  const end = performance.now() + runningDeadlineMs;
  for (;;) {
    const seen = await api.status(token, id);
    if (seen.desired === 'stopped' && seen.status === 'stopped') return seen;
    if (seen.status === 'running' && (await pageAnswers(seen))) return seen;
    const failed = seen.status === 'failed';
    if (failed || performance.now() > end) {
      throw new Error(`the demo container is ${seen.status} (${seen.reason ?? 'no reason'}: ${seen.message ?? ''})`);
    }
    await sleep(pollMs, signal);
    signal.throwIfAborted();
  }
}

/** The container's first log lines; empty if none arrive within a deadline. */
export async function demoLines(api: Api, token: string, id: string, signal: AbortSignal): Promise<string[]> {
  const end = performance.now() + logsDeadlineMs;
  for (;;) {
    const lines = (await api.logs(token, id, 3)).map(({ line }) => line);
    if (lines.length > 0 || performance.now() > end) return lines;
    await sleep(pollMs, signal);
    signal.throwIfAborted();
  }
}

export async function showDemo(
  { api, tokens }: Stack,
  id: string,
  status: ContainerStatusView,
  lines: string[],
  network: string | undefined,
): Promise<void> {
  const { token } = tokens.tenants.demo;
  const quota = await api.quota(token);
  const used = Object.entries(quota.usage).map(
    ([dimension, amount]) => `${dimension} ${amount} of ${quota.caps[dimension] ?? '∞'}`,
  );
  const reachable = status.addresses.map(({ port, address }) => `${port} at http://${address}`);
  say('');
  say(
    `  container  ${demoName} (${id}) is ${status.status}${reachable.length === 0 ? '' : `, ${reachable.join(', ')}`}`,
  );
  for (const line of lines) say(`  log        ${line}`);
  // BusyBox’s wget, linked statically, ends with a segmentation fault.
  say('             its wget takes addresses alone; nc and nslookup take names');
  if (network !== undefined) say(`  network    ${network}`);
  say(`  quota      ${used.join(', ')}`);
  say('');
  say(`  API        ${api.baseUrl}`);
  say('');
}
