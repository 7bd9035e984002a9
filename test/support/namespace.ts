/**
 * Runs a test file again in its own network namespace, so that its changes to the network affect no
 * other test.
 */
import t, { type Test } from 'tap';
import { run } from '../../dev/process/run.ts';
import { toolHere } from '../../dev/fetch/tools.ts';
import type { ToolName } from '../../dev/fetch/tool-table.ts';

const insideVariable = 'LONGSHORE_TEST_INSIDE_NAMESPACE';

export interface NamespaceTest {
  readonly name: string;
  /** The test's `import.meta.filename`. */
  readonly file: string;
  /** Tools to fetch before entering the namespace, which has no network access. */
  readonly tools: readonly ToolName[];
  readonly timeoutMs: number;
}

async function whyNot(tools: readonly ToolName[]): Promise<string | false> {
  if (process.platform !== 'linux' || process.getuid?.() !== 0) return 'network namespaces need Linux and root';
  for (const name of ['ip', ...tools] as const) await toolHere(name);
  const tried = await run('unshare', ['--net', '--', 'true'], { deadlineMs: 5_000 });
  return tried.code === 0 ? false : tried.stderr.trim();
}

/** A file may have only one such test; its other tests run inside and outside the namespace. */
export async function testInNamespace(options: NamespaceTest, test: (t: Test) => Promise<void>): Promise<void> {
  const { name, file, tools, timeoutMs } = options;
  t.setTimeout(timeoutMs);
  if (process.env[insideVariable] !== undefined) {
    await t.test(name, { timeout: timeoutMs }, test);
    return;
  }
  const skip = await whyNot(tools);
  if (skip !== false) {
    t.pass(name, { skip });
    return;
  }
  const ip = await toolHere('ip');
  const script = '"$0" link set dev lo up && exec "$@"';
  await t.spawn(
    'unshare',
    ['--net', '--', 'sh', '-c', script, ip.path, process.execPath, '--enable-source-maps', file],
    { env: { ...process.env, [insideVariable]: '1' }, timeout: timeoutMs },
    'in its own network namespace',
  );
}
