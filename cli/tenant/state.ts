/** The state of a container in few words. Pure. */
import type { StatusView } from '../client/wait.ts';
import type { Item } from './find.ts';

/** The exit code, unless the status already implies it. */
function codeOf({ status, exit_code }: StatusView): string[] {
  const isUp = status === 'running' || status === 'starting' || status === 'pulling' || status === 'pending';
  return isUp || exit_code === null || exit_code === 0 ? [] : [`exit code ${exit_code}`];
}

/** `running (unhealthy)`, `failed (exit code 3)`, `backoff (crash_loop, exit code 1)`. */
export function stateText({ container, status: view }: Pick<Item, 'container' | 'status'>): string {
  if (view === undefined) return container.status;
  const { reason, update } = view;
  const phase = update?.phase === 'preparing' || update?.phase === 'verifying' ? [`update ${update.phase}`] : [];
  const code = codeOf(view);
  const why = reason === null || (reason === 'exited' && code.length > 0) ? [] : [reason];
  const all = [...phase, ...why, ...code];
  return `${view.status}${all.length === 0 ? '' : ` (${all.join(', ')})`}`;
}

/** `127.0.0.1:28518->8080/tcp`, as Docker writes it; without an address, the ports alone. */
export function portsText({ container, status: view }: Pick<Item, 'container' | 'status'>): string {
  const addresses = view?.addresses ?? [];
  if (addresses.length > 0) return addresses.map(({ port, address }) => `${address}->${port}`).join(', ');
  return container.ports.map((port) => (typeof port === 'number' ? `${port}/tcp` : port)).join(', ') || '-';
}
