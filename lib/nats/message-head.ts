/**
 * The head of a message, read from its bytes. The client decodes a head into a map and checks each
 * name of it, which takes more time than all else that a load does with a record but its JSON.
 */
import type { Msg, MsgHdrs } from '@nats-io/transport-node';

export type MessageHead = Pick<MsgHdrs, 'code' | 'description' | 'get'>;

const version = 'NATS/1.0';

/** `NATS/1.0 204 EOB`, then lines `name: value`. Of lines with the same name the first counts. */
class EncodedHead implements MessageHead {
  readonly #text: string;

  constructor(text: string) {
    this.#text = text;
  }

  /** 0: none. */
  get code(): number {
    return Number.parseInt(this.#status, 10) || 0;
  }

  get description(): string {
    return this.#status.replace(/^\d+ */, '');
  }

  get(name: string): string {
    const line = `\r\n${name}:`;
    const at = this.#text.indexOf(line);
    if (at < 0) return '';
    const from = at + line.length;
    return this.#text.slice(from, this.#text.indexOf('\r\n', from)).trim();
  }

  get #status(): string {
    return this.#text.slice(version.length, this.#text.indexOf('\r\n')).trim();
  }
}

/** The client's messages know the length of subjects, head and payload; its types do not say so. */
interface Sized {
  size?(): number;
}

/** `undefined` if the message has none. */
export function headOf(message: Msg & Sized): MessageHead | undefined {
  const { data } = message;
  // The client hands out the payload as a view of the bytes that arrived, so the head lies before.
  const length = (message.size?.() ?? 0) - message.subject.length - (message.reply?.length ?? 0) - data.length;
  const from = data.byteOffset - length;
  if (length > version.length && from >= 0) {
    const text = Buffer.from(data.buffer, from, length).toString();
    if (text.startsWith(version) && text.endsWith('\r\n\r\n')) return new EncodedHead(text);
  }
  return message.headers;
}
