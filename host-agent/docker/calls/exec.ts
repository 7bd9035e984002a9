/** Calls about processes that are started beside that of a container. */
import type { Duplex } from 'node:stream';
import { decode, type ExecState } from '../answers.ts';
import { json, parse, type EngineClient } from './client.ts';

/** Body of `POST /containers/:id/exec`, as far as the agent uses it. */
export interface ExecBody {
  readonly Cmd: readonly string[];
  readonly Tty: boolean;
  readonly AttachStdin: boolean;
  readonly User?: string;
  readonly WorkingDir?: string;
}

export interface ExecCalls {
  /** Prepares a process and does not start it. */
  createExec(
    container: string,
    body: ExecBody,
  ): Promise<{ readonly kind: 'created'; readonly id: string } | { readonly kind: 'not_running' }>;
  /** Starts it. The stream is its terminal, or its input and its output in frames (demux.ts). */
  startExec(id: string, tty: boolean): Promise<Duplex>;
  /** Sets the size of the process's terminal. Does nothing if the process has ended. */
  resizeExec(id: string, size: { readonly cols: number; readonly rows: number }): Promise<void>;
  /** `undefined` if the engine no longer knows the process, as after the end of its container. */
  inspectExec(id: string): Promise<ExecState | undefined>;
}

export const execCalls = ({ ask, hijack }: EngineClient): ExecCalls => ({
  createExec: async (container, body) => {
    const call = { name: 'exec create', method: 'POST', path: `/containers/${container}/exec` } as const;
    const attached = { ...body, AttachStdout: true, AttachStderr: true, Privileged: false };
    const reply = await ask({ ...call, body: json(attached) }, [201, 404, 409]);
    return reply.status === 201
      ? { kind: 'created', id: parse(call.name, decode.created, reply).Id }
      : { kind: 'not_running' };
  },
  startExec: (id, Tty) =>
    hijack({ name: 'exec start', method: 'POST', path: `/exec/${id}/start`, body: json({ Detach: false, Tty }) }),
  resizeExec: async (id, { cols, rows }) => {
    const path = `/exec/${id}/resize?h=${rows}&w=${cols}`;
    await ask({ name: 'exec resize', method: 'POST', path }, [200, 201, 404, 409]);
  },
  inspectExec: async (id) => {
    const call = { name: 'exec inspect', method: 'GET', path: `/exec/${id}/json` } as const;
    const reply = await ask(call, [200, 404]);
    return reply.status === 404 ? undefined : parse(call.name, decode.execState, reply);
  },
});
