/** `longshore` as a process runs it, in this process, against a far end that answers by a table. */
import { Writable } from 'node:stream';
import type { Test } from 'tap';
import type { Terminal } from '../../cli/context.ts';
import { groups } from '../../cli/groups.ts';
import { runLine } from '../../cli/run.ts';
import { Output } from '../../cli/terminal/output.ts';
import { farEnd, type Asked, type Reaction, type Scripted } from './client/server.ts';

/** Answers by `METHOD /path`; those of a list come one after another, and the last one stays. */
export type Answers = Readonly<Record<string, Reaction | readonly Reaction[]>>;

const unknown: Reaction = { status: 404, body: { error: 'not_found' } };

export interface Line {
  readonly code: number;
  readonly out: string;
  readonly err: string;
}

interface Options {
  /** Columns of the terminal; both outputs are pipes if absent. */
  readonly columns?: number;
  readonly token?: string;
  /** Ctrl-C comes with this request, which gets no answer. */
  readonly interruptedBy?: string;
}

export const ok = (data: unknown, headers: Readonly<Record<string, string>> = {}): Scripted => ({
  status: 200,
  body: { data },
  headers,
});

export async function commands(t: Test, answers: Answers, options: Options = {}) {
  const asked: Asked[] = [];
  const counts = new Map<string, number>();
  const interrupt = { now: () => {} };
  const { url } = await farEnd(t, (response, one) => {
    asked.push(one);
    const request = `${one.method} ${one.path.replace(/\?.*/, '')}`;
    if (request === options.interruptedBy) return interrupt.now();
    const all = [answers[request] ?? unknown].flat();
    const at = counts.get(request) ?? 0;
    counts.set(request, at + 1);
    const reaction = all[Math.min(at, all.length - 1)] ?? unknown;
    if (typeof reaction === 'function') return reaction(response, one);
    const { status, body, headers } = reaction;
    response.writeHead(status, { 'content-type': 'application/json', ...headers });
    response.end(body === undefined ? undefined : JSON.stringify(body));
  });
  return { longshore: lineAt(url, options, (now) => (interrupt.now = now)), asked, url };
}

/** Commands against this server. @param started is given the Ctrl-C of each */
export const lineAt =
  (url: string, options: Options = {}, started: (interrupt: () => void) => void = () => {}) =>
  async (...args: string[]): Promise<Line> => {
    const interrupt = new AbortController();
    started(() => interrupt.abort());
    const [out, err] = [outputOf(options.columns), outputOf(options.columns)];
    const terminal: Terminal = {
      env: { LONGSHORE_SERVER: url, LONGSHORE_TOKEN: options.token ?? 'a.b.c', LONGSHORE_CONFIG: '/nonexistent' },
      stdin: process.stdin,
      stdout: out.output,
      stderr: err.output,
      signal: interrupt.signal,
      nowMs: () => Date.parse('2026-11-25T12:00:00Z'),
    };
    const code = await runLine(args, terminal, groups);
    return { code, out: out.text(), err: err.text() };
  };

function outputOf(columns: number | undefined) {
  const chunks: Buffer[] = [];
  const stream = new Writable({
    write: (chunk: Buffer, _encoding, done) => {
      chunks.push(chunk);
      done();
    },
  });
  const tty = columns === undefined ? {} : { isTTY: true, columns };
  const output = new Output(Object.assign(stream, tty) as unknown as NodeJS.WriteStream);
  return { output, text: () => Buffer.concat(chunks).toString() };
}
