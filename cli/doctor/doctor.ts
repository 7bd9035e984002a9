/** `doctor`: looks at a deployment from outside, as its users and operators reach it. */
import type { Command } from 'commander';
import { connect } from 'node:tls';
import { decodeJwt } from 'jose/jwt/decode';
import { messageOf } from '../../lib/error-message.ts';
import { withAbort } from '../../lib/time/backoff.ts';
import { version } from '../../lib/version.ts';
import { limits } from '../../schemas/limits.ts';
import { oneLine } from '../../schemas/visible.ts';
import { bodyOf, dataOf } from '../client/api.ts';
import { ApiError, InterruptedError } from '../client/errors.ts';
import { allOf } from '../client/pages.ts';
import { action, type Context, type Terminal } from '../context.ts';
import { paintOf } from '../terminal/colours.ts';
import { Exit, exitCodes } from '../terminal/errors.ts';
import { joined } from '../terminal/output.ts';
import * as verdicts from './verdicts.ts';

/** Deadline of one look at a server. */
const lookMs = 10_000;

type Verdict = verdicts.Verdict;

interface Probe {
  /** Status of the answer, or the reason why none came. */
  readonly status: number | string;
  readonly text: string;
  readonly ms: number;
  /** Difference of the clocks, by the header `Date`. */
  readonly aheadMs: number | undefined;
}

async function probe({ server, terminal }: Context, path: string): Promise<Probe> {
  const startMs = performance.now();
  try {
    const ask = async ({ signal }: AbortController): Promise<readonly [answer: Response, text: string]> => {
      const answer = await fetch(`${server}${path}`, { signal });
      return [answer, (await answer.text()).slice(0, limits.clientErrorChars)];
    };
    const [answer, text] = await withAbort([terminal.signal], ask, lookMs);
    const ms = performance.now() - startMs;
    const date = Date.parse(answer.headers.get('date') ?? '');
    return { status: answer.status, text, ms, aheadMs: Number.isNaN(date) ? undefined : date - terminal.nowMs() };
  } catch (error) {
    const { message, cause } = error as Error;
    const why = cause instanceof Error && cause.message !== '' ? cause.message : message;
    return { status: `no answer: ${why}`, text: '', ms: performance.now() - startMs, aheadMs: undefined };
  }
}

/** End of the server's certificate in ms since 1970, or the reason why it is not accepted. */
function certificateEnd({ hostname: host, port }: URL): Promise<number | string> {
  return new Promise((resolve) => {
    const socket = connect({ host, port: Number(port || 443), servername: host, timeout: lookMs });
    const end = (found: number | string): void => {
      socket.destroy();
      resolve(found);
    };
    socket.once('secureConnect', () => end(Date.parse(socket.getPeerCertificate().valid_to)));
    socket.once('timeout', () => end('no answer'));
    socket.once('error', ({ message }) => end(message));
  });
}

/** Failure as text for a person; `undefined` if the work succeeded. */
async function refusalOf(work: Promise<unknown>): Promise<string | undefined> {
  try {
    await work;
    return undefined;
  } catch (error) {
    // A token with only some scopes is signed in, too.
    if (error instanceof ApiError && error.code === 'forbidden') return undefined;
    return messageOf(error);
  }
}

/** Expiry in seconds; `undefined` also for a text that is no token, which the server refuses. */
function endIn(token: string): number | undefined {
  try {
    return decodeJwt(token).exp;
  } catch {
    return undefined;
  }
}

async function hostVerdicts({ api }: Context): Promise<Verdict[]> {
  try {
    return verdicts.healthyHosts(await allOf((query) => api.GET('/api/v2/operator/hosts', { params: { query } })));
  } catch (error) {
    if (!(error instanceof ApiError) || error.code !== 'forbidden') throw error;
  }
  try {
    const hosts = await allOf((query) => api.GET('/api/v2/compute/hosts', { params: { query } }));
    return [verdicts.placed(hosts.length)];
  } catch (error) {
    if (error instanceof ApiError && error.code === 'forbidden') return [];
    throw error;
  }
}

async function examine(context: Context): Promise<Verdict[]> {
  const { api, server, token, terminal } = context;
  const url = new URL(server);
  const alive = await probe(context, '/healthz');
  const isEncrypted = url.protocol === 'https:';
  const nowMs = terminal.nowMs();
  const outside = [
    verdicts.reachable(alive.status, alive.ms),
    verdicts.encrypted(url, isEncrypted ? await certificateEnd(url) : undefined, nowMs),
  ];
  // Without an answer nothing more can be known.
  if (alive.status !== 200) return outside;
  const { status, text } = await probe(context, '/readyz');
  const prepared = [...outside, verdicts.inTime(alive.aheadMs), verdicts.ready(status, text)];
  if (status !== 200) return prepared;
  const exp = endIn(token);
  const refusal = await refusalOf(dataOf(api.GET('/api/v2/compute/quota')));
  const document = await bodyOf(api.GET('/api/v2/openapi.json'));
  const { info } = document as { readonly info: { readonly version: string } };
  return [
    ...prepared,
    verdicts.sameRelease(info.version, version),
    verdicts.signedIn(refusal, exp === undefined ? undefined : exp * 1000, nowMs),
    ...(refusal === undefined ? await hostVerdicts(context) : []),
  ];
}

async function doctor(context: Context): Promise<void> {
  const found = await examine(context);
  if (context.terminal.signal.aborted) throw new InterruptedError();
  const paint = paintOf(context);
  const lines = found.map(({ name, ok, found: text, todo }) => {
    const line = paint(`${ok ? '✓' : '✗'} ${name}: ${oneLine(text)}`);
    return todo === undefined ? line : joined([line, '\n  ', todo]);
  });
  context.show(found, joined(lines, '\n'));
  if (found.some(({ ok }) => !ok)) throw new Exit(exitCodes.failed);
}

export function addDoctor(program: Command, terminal: Terminal): void {
  program
    .command('doctor')
    .description('Diagnose the connection to the server: TLS, clock, token, versions, hosts')
    .action(action(terminal, doctor));
}
