/** One health check over the network, from the host to the container's own address. */
import { request } from 'node:http';
import { connect } from 'node:net';
import { withAbort } from '../../lib/time/backoff.ts';
import type { HealthCheck } from '../../schemas/api/policy.ts';

/** A port that the agent can reach. */
export interface Endpoint {
  readonly host: string;
  readonly port: number;
}

/** @returns what is wrong; `undefined` if the check has passed */
export type Probe = (check: HealthCheck, endpoint: Endpoint, signal: AbortSignal) => Promise<string | undefined>;

export const probe: Probe = ({ http, timeout }, endpoint, signal) =>
  withAbort(
    [signal],
    ({ signal: bounded }) =>
      http === undefined ? connects(endpoint, timeout, bounded) : answers(endpoint, http.path, timeout, bounded),
    timeout * 1000,
  );

const lateWords = (what: string, timeout: number): string => `${what} in ${timeout} s`;

const connects = ({ host, port }: Endpoint, timeout: number, signal: AbortSignal): Promise<string | undefined> =>
  new Promise((resolve) => {
    const socket = connect({ host, port, signal });
    socket.once('connect', () => {
      resolve(undefined);
      socket.destroy();
    });
    socket.once('error', (error) =>
      resolve(signal.aborted ? lateWords(`port ${port} did not open`, timeout) : `port ${port}: ${wordsOf(error)}`),
    );
  });

function answers(
  { host, port }: Endpoint,
  path: string,
  timeout: number,
  signal: AbortSignal,
): Promise<string | undefined> {
  const what = `GET ${path} on port ${port}`;
  return new Promise((resolve) => {
    const asked = request({ host, port, path, signal, agent: false, headers: { 'user-agent': 'longshore-health' } });
    asked.once('response', (response) => {
      const status = response.statusCode ?? 0;
      resolve(status >= 200 && status < 400 ? undefined : `${what} answered ${status}`);
      response.destroy();
    });
    asked.on('error', (error) =>
      resolve(signal.aborted ? lateWords(`${what} had no answer`, timeout) : `${what}: ${wordsOf(error)}`),
    );
    asked.end();
  });
}

export const wordsOf = (error: NodeJS.ErrnoException): string =>
  error.code === 'ECONNREFUSED' ? 'nothing listens there' : (error.code ?? error.message);
