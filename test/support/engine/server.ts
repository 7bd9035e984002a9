/**
 * The simulated engine on a real socket. A test can delay, cut or answer any call itself, which a
 * real engine does not offer.
 */
import { once } from 'node:events';
import { rmSync } from 'node:fs';
import { createServer, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { messageOf } from '../../../lib/error-message.ts';
import { parseCall, replyTo, type EngineCall, type Streamed } from './api.ts';
import { frameOf, recordsSince } from './log.ts';
import { refusal, type Answer, type EngineModel } from './model.ts';

export type Verdict =
  /** The engine answers as usual. */
  | undefined
  /** The engine does not answer; the caller gives up. */
  | 'hang'
  /**
   * The connection breaks before (`cut`) or after (`cut_after`) the engine executes the call; that
   * of a log in the middle of its last frame.
   */
  | 'cut'
  | 'cut_after'
  /** The interceptor writes the response itself. */
  | 'answered'
  | Answer;

export type Intercept = (call: EngineCall, response: ServerResponse) => Verdict | Promise<Verdict>;

export interface SimulatedEngine {
  readonly model: EngineModel;
  /** The value for DOCKER_HOST. */
  readonly host: string;
  intercept(handler: Intercept | undefined): void;
  /** Unanswered calls whose callers still wait. */
  hanging(): readonly EngineCall[];
  /** Unanswered calls whose callers gave up. */
  givenUp(): readonly EngineCall[];
  /** All calls in order of arrival. */
  calls(): readonly EngineCall[];
  close(): Promise<void>;
}

export interface ServerOptions {
  /** Path of a Unix socket; without it the engine listens on a TCP port of loopback. */
  readonly socketPath?: string;
  readonly intercept?: Intercept;
  /** Resolves when a pull is to end. */
  readonly pull?: () => Promise<void>;
}

export function writeAnswer(response: ServerResponse, { status, body }: Answer): void {
  response.writeHead(status, { 'content-type': 'application/json' });
  response.end(body === undefined ? undefined : JSON.stringify(body));
}

async function bodyOf(request: IncomingMessage): Promise<Buffer> {
  const chunks: Buffer[] = [];
  for await (const chunk of request as AsyncIterable<Buffer>) chunks.push(chunk);
  return Buffer.concat(chunks);
}

export async function startSimulatedEngine(model: EngineModel, options: ServerOptions = {}): Promise<SimulatedEngine> {
  const hanging = new Set<EngineCall>();
  const givenUp: EngineCall[] = [];
  const calls: EngineCall[] = [];
  let { intercept } = options;

  const hang = (call: EngineCall, response: ServerResponse): void => {
    hanging.add(call);
    response.once('close', () => {
      hanging.delete(call);
      givenUp.push(call);
    });
  };

  const sendLog = (
    { container, since, isFollowing }: Extract<Streamed, { kind: 'logs' }>,
    response: ServerResponse,
    isCut: boolean,
  ): void => {
    const frames = Buffer.concat(recordsSince(container.log ?? [], since).map(frameOf));
    if (frames.length > 0) response.write(isCut ? frames.subarray(0, -1) : frames);
    if (isCut) return void setImmediate(() => response.destroy());
    if (!isFollowing) return void response.end();
    const unread = model.onLine(container, (record) => response.write(frameOf(record)));
    const unwaited = model.onDown(container, () => response.end());
    response.once('close', () => {
      unread();
      unwaited();
    });
  };

  const stream = async (streamed: Streamed, response: ServerResponse, isCut: boolean): Promise<void> => {
    response.writeHead(200).flushHeaders();
    switch (streamed.kind) {
      case 'events':
        response.once(
          'close',
          model.onEvent(streamed.labels, streamed.types, (line) => response.write(line)),
        );
        return;
      case 'logs':
        return sendLog(streamed, response, isCut);
      case 'pull':
        response.write(`${JSON.stringify({ status: `Pulling from ${streamed.reference}` })}\n`);
        await options.pull?.();
        model.pull(streamed.reference);
        response.end(`${JSON.stringify({ status: 'Status: Downloaded newer image' })}\n`);
    }
  };

  const serve = async (request: IncomingMessage, response: ServerResponse): Promise<void> => {
    const call = parseCall(model, request.method ?? '', request.url ?? '/', await bodyOf(request));
    calls.push(call);
    const verdict = await intercept?.(call, response);
    if (verdict === 'answered') return;
    if (verdict === 'hang') return hang(call, response);
    if (verdict === 'cut') return void response.destroy();
    if (typeof verdict === 'object') return writeAnswer(response, verdict);
    const reply = replyTo(model, call);
    if (reply.kind !== 'whole') return stream(reply, response, verdict === 'cut_after');
    if (verdict === 'cut_after') return void response.destroy();
    writeAnswer(response, reply.answer);
  };

  const server = createServer((request, response) => {
    serve(request, response).catch((error: unknown) => {
      if (response.headersSent) return void response.destroy();
      writeAnswer(response, refusal(500, messageOf(error)));
    });
  });
  const { socketPath } = options;
  if (socketPath === undefined) server.listen(0, '127.0.0.1');
  else {
    rmSync(socketPath, { force: true });
    server.listen(socketPath);
  }
  await once(server, 'listening');

  return {
    model,
    host:
      socketPath === undefined ? `tcp://127.0.0.1:${(server.address() as AddressInfo).port}` : `unix://${socketPath}`,
    intercept: (handler) => (intercept = handler),
    hanging: () => [...hanging],
    givenUp: () => givenUp,
    calls: () => calls,
    close: async () => {
      server.closeAllConnections();
      server.close();
      await once(server, 'close');
    },
  };
}
