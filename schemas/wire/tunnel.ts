/**
 * Messages between the two ends of a tunnel (lib/tunnel): a byte for the kind, the number of the
 * message in its direction, and its content. Pure.
 */
export type TunnelMessage =
  /** Of a stream of bytes: 0 to the host, 1 and 2 from it, as a process numbers its own. */
  | { readonly kind: 'data'; readonly channel: number; readonly bytes: Uint8Array }
  /** JSON, by the kind of the session. */
  | { readonly kind: 'control'; readonly text: string }
  /** So many more bytes and control messages may be sent. Before the first, none. */
  | { readonly kind: 'credit'; readonly bytes: number; readonly controls: number }
  /** The end is there. */
  | { readonly kind: 'beat' }
  /** The last message: an encoded `SessionEnd`. */
  | { readonly kind: 'end'; readonly text: string };

type Kind = TunnelMessage['kind'];

/** The byte of a kind is its place here. Part of the protocol: only add. */
const order: readonly Kind[] = ['data', 'control', 'credit', 'beat', 'end'];

const headBytes = 5;
const creditBytes = 8;
const none = new Uint8Array(0);
const encoder = new TextEncoder();
const decoder = new TextDecoder('utf-8', { fatal: true });

function contentOf(message: TunnelMessage): Uint8Array {
  switch (message.kind) {
    case 'data': {
      const content = new Uint8Array(1 + message.bytes.length);
      content[0] = message.channel;
      content.set(message.bytes, 1);
      return content;
    }
    case 'control':
    case 'end':
      return encoder.encode(message.text);
    case 'credit': {
      const content = new DataView(new ArrayBuffer(creditBytes));
      content.setUint32(0, message.bytes);
      content.setUint32(creditBytes / 2, message.controls);
      return new Uint8Array(content.buffer);
    }
    case 'beat':
      return none;
  }
}

/** Numbers go round: a session may have more messages than 32 bits count. */
export const numberAfter = (number: number): number => (number + 1) >>> 0;

export function encodeTunnelMessage(number: number, message: TunnelMessage): Uint8Array {
  const content = contentOf(message);
  const encoded = new Uint8Array(headBytes + content.length);
  const head = new DataView(encoded.buffer);
  head.setUint8(0, order.indexOf(message.kind));
  head.setUint32(1, number);
  encoded.set(content, headBytes);
  return encoded;
}

export interface NumberedMessage {
  readonly number: number;
  readonly message: TunnelMessage;
}

/** `undefined` if it is no such message. The bytes of `data` are those that were given. */
export function decodeTunnelMessage(encoded: Uint8Array): NumberedMessage | undefined {
  if (encoded.length < headBytes) return undefined;
  const view = new DataView(encoded.buffer, encoded.byteOffset, encoded.byteLength);
  const message = messageOf(order[view.getUint8(0)], encoded.subarray(headBytes));
  return message === undefined ? undefined : { number: view.getUint32(1), message };
}

function messageOf(kind: Kind | undefined, content: Uint8Array): TunnelMessage | undefined {
  switch (kind) {
    case 'data': {
      const [channel] = content;
      return channel === undefined ? undefined : { kind, channel, bytes: content.subarray(1) };
    }
    case 'control':
    case 'end': {
      const text = textOf(content);
      return text === undefined ? undefined : { kind, text };
    }
    case 'credit': {
      if (content.length !== creditBytes) return undefined;
      const view = new DataView(content.buffer, content.byteOffset, content.byteLength);
      return { kind, bytes: view.getUint32(0), controls: view.getUint32(creditBytes / 2) };
    }
    case 'beat':
      return { kind };
    case undefined:
      return undefined;
  }
}

function textOf(content: Uint8Array): string | undefined {
  try {
    return decoder.decode(content);
  } catch {
    return undefined;
  }
}
