/**
 * Framing of a session on its WebSocket (docs/api.md, "Exec and port-forward"). Pure. An exec
 * numbers its streams in the first byte of each binary message; a forward has bytes alone, and JSON
 * as text.
 */
import Type from 'typebox';
import { DecodeError, decoder } from '../../lib/decode.ts';
import { limits } from '../../schemas/limits.ts';
import { ClientControl, type SessionProtocol } from '../../schemas/api/sessions/control.ts';
import { execProtocol, forwardProtocol } from '../../schemas/words.ts';

const decodeType = decoder(Type.Object({ type: Type.String() }));
const decodeControl = decoder(ClientControl);

export type ClientMessage =
  | { readonly kind: 'data'; readonly bytes: Uint8Array }
  | { readonly kind: 'control'; readonly control: ClientControl }
  /** It breaks the rules. */
  | { readonly kind: 'fault'; readonly fault: string };

export interface Framing {
  readonly protocol: SessionProtocol;
  /** A message of the client. */
  read(bytes: Uint8Array, isBinary: boolean): ClientMessage;
  /** Bytes that come from the host on a channel. */
  data(channel: number, bytes: Uint8Array): Uint8Array;
  control(value: object): string | Uint8Array;
}

const fault = (text: string): ClientMessage => ({ kind: 'fault', fault: text });

function controlIn(bytes: Uint8Array, types: readonly ClientControl['type'][]): ClientMessage {
  if (bytes.length > limits.tunnelControlBytes) return fault('a control message is too long');
  try {
    const { type } = decodeType(bytes);
    if (!types.some((one) => one === type))
      return fault(
        `a session of this kind knows no control "${type.slice(0, 32)}": ${types.join(', ')} ${types.length === 1 ? 'is' : 'are'} known`,
      );
    return { kind: 'control', control: decodeControl(bytes) };
  } catch (error) {
    if (!(error instanceof DecodeError)) throw error;
    return fault(`a control message is wrong: ${error.message}`);
  }
}

/** The channels of an exec: those of a process, and its control messages. */
const stdin = 0;
const control = 3;
const encoder = new TextEncoder();

function onChannel(channel: number, bytes: Uint8Array): Uint8Array {
  const framed = new Uint8Array(1 + bytes.length);
  framed[0] = channel;
  framed.set(bytes, 1);
  return framed;
}

/** @param tty true if there is a terminal, which has a size */
export const execFraming = (about: { readonly tty: boolean; readonly stdin: boolean }): Framing => ({
  protocol: execProtocol,
  read: (bytes, isBinary) => {
    if (!isBinary) return fault('an exec takes binary messages alone');
    const content = bytes.subarray(1);
    switch (bytes[0]) {
      case stdin:
        return about.stdin ? { kind: 'data', bytes: content } : fault('the process has no input: ask with stdin=true');
      case control:
        return controlIn(content, [
          'signal',
          ...(about.tty ? (['resize'] as const) : []),
          ...(about.stdin ? (['end'] as const) : []),
        ]);
      default:
        return fault('the first byte of a message is 0 (input) or 3 (control)');
    }
  },
  data: onChannel,
  control: (value) => onChannel(control, encoder.encode(JSON.stringify(value))),
});

export const forwardFraming: Framing = {
  protocol: forwardProtocol,
  read: (bytes, isBinary) => (isBinary ? { kind: 'data', bytes } : controlIn(bytes, ['end'])),
  data: (_channel, bytes) => bytes,
  control: (value) => JSON.stringify(value),
};
