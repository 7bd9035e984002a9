/** The simulated engine in the agent's own process: calls reach the model without HTTP. */
import { Readable } from 'node:stream';
import type { Call, OpenReply, Reply, Transport } from '../../../host-agent/docker/transport.ts';
import { parseCall, replyTo } from './api.ts';
import type { EngineModel } from './model.ts';

/** A stream that the engine model writes and ends. */
const openStream = (): Readable => new Readable({ read: () => undefined });

export function transportTo(model: EngineModel): Transport {
  const ask = ({ method, path, body }: Call) =>
    replyTo(model, parseCall(model, method, path, body?.bytes ?? new Uint8Array()));

  const call = (asked: Call): Reply => {
    const reply = ask(asked);
    if (reply.kind !== 'whole') throw new Error(`${asked.name} is answered by a stream`);
    const { status, body } = reply.answer;
    return { status, headers: {}, body: Buffer.from(body === undefined ? '' : JSON.stringify(body)) };
  };

  const open = (asked: Call): OpenReply => {
    const stream = openStream();
    const reply = ask(asked);
    switch (reply.kind) {
      case 'events':
        stream.once(
          'close',
          model.onEvent(reply.labels, reply.types, (line) => stream.push(line)),
        );
        break;
      case 'logs':
        if (reply.isFollowing)
          stream.once(
            'close',
            model.onDown(reply.container, () => stream.push(null)),
          );
        else stream.push(null);
        break;
      case 'pull':
        model.pull(reply.reference);
        stream.push(null);
        break;
      case 'whole':
        stream.push(null);
        return { status: reply.answer.status, headers: {}, stream };
    }
    return { status: 200, headers: {}, stream };
  };

  return {
    call: (asked) => Promise.resolve(call(asked)),
    open: (asked) => Promise.resolve(open(asked)),
    close: () => undefined,
  };
}
