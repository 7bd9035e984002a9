/** A small Docker Engine API client for the tooling, over a unix socket or TCP. */
import { request } from 'node:http';

export type EngineAddress =
  | { readonly kind: 'unix'; readonly socketPath: string }
  | { readonly kind: 'tcp'; readonly host: string; readonly port: number };

/**
 * Parses a DOCKER_HOST value; undefined for a scheme this client does not support (ssh, npipe,
 * TLS).
 */
export function parseEngineHost(value: string): EngineAddress | undefined {
  const unix = /^unix:\/\/(\/.+)$/.exec(value)?.[1];
  if (unix !== undefined) return { kind: 'unix', socketPath: unix };
  const tcp = /^(?:tcp|http):\/\/([^:/]+):(\d+)\/?$/.exec(value);
  return tcp === null ? undefined : { kind: 'tcp', host: tcp[1] ?? '', port: Number(tcp[2]) };
}

export interface EngineAnswer {
  readonly status: number;
  readonly text: string;
}

export function engineRequest(
  address: EngineAddress,
  method: 'GET' | 'POST' | 'DELETE',
  path: string,
  options: { readonly deadlineMs: number; readonly body?: unknown },
): Promise<EngineAnswer> {
  const where =
    address.kind === 'unix' ? { socketPath: address.socketPath } : { host: address.host, port: address.port };
  return new Promise((resolve, reject) => {
    const body = options.body === undefined ? undefined : JSON.stringify(options.body);
    const outgoing = request(
      {
        ...where,
        method,
        path,
        agent: false,
        signal: AbortSignal.timeout(options.deadlineMs),
        headers: { host: 'docker', ...(body === undefined ? {} : { 'content-type': 'application/json' }) },
      },
      (incoming) => {
        let text = '';
        incoming.setEncoding('utf8');
        incoming.on('data', (chunk: string) => (text += chunk));
        incoming.once('error', reject);
        incoming.once('end', () => resolve({ status: incoming.statusCode ?? 0, text }));
      },
    );
    outgoing.once('error', reject);
    outgoing.end(body);
  });
}

/** Sends a GET and parses the JSON answer. */
export async function engineGet<T>(address: EngineAddress, path: string, deadlineMs: number): Promise<T> {
  const { status, text } = await engineRequest(address, 'GET', path, { deadlineMs });
  if (status !== 200) throw new Error(`GET ${path}: ${status} ${text.trim()}`);
  return JSON.parse(text) as T;
}

export async function engineAnswers(address: EngineAddress, deadlineMs: number): Promise<boolean> {
  try {
    return (await engineRequest(address, 'GET', '/_ping', { deadlineMs })).text === 'OK';
  } catch {
    return false;
  }
}

const stopGraceS = 5;
const stopDeadlineMs = 30_000;

/**
 * Stops every running container that has all these labels, as `docker stop` does. A container that
 * ends in the meantime is not an error.
 */
export async function stopContainers(host: string, labels: Readonly<Record<string, string>>): Promise<void> {
  const address = parseEngineHost(host);
  if (address === undefined) return;
  const label = Object.entries(labels).map(([name, value]) => `${name}=${value}`);
  const filters = encodeURIComponent(JSON.stringify({ label, status: ['running'] }));
  const running = await engineGet<{ Id: string }[]>(address, `/containers/json?filters=${filters}`, stopDeadlineMs);
  await Promise.all(
    running.map(({ Id }) =>
      engineRequest(address, 'POST', `/containers/${Id}/stop?t=${stopGraceS}`, { deadlineMs: stopDeadlineMs }),
    ),
  );
}
