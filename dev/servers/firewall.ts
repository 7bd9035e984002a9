/** Removes the firewall rules that an agent leaves. */
import { run } from '../process/run.ts';
import type { ServerTool } from '../fetch/tools.ts';

const deadlineMs = 10_000;

/**
 * Deletes an agent's firewall table. The agent leaves it when it stops, because its containers keep
 * running, so it is removed once the containers have been stopped.
 */
export async function removeFirewall({ path, env }: ServerTool, table: string): Promise<void> {
  await run(path, ['delete', 'table', 'inet', table], { deadlineMs, env });
}
