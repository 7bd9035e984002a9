/**
 * Packets of VICI: a length, a kind, a name for some kinds, and a message (strongSwan,
 * src/libcharon/plugins/vici/README.md). Pure.
 */
import { KiB } from '../../../schemas/limits/units.ts';
import { decodeMessage, encodeMessage, ViciError, type ReadSection, type Section } from './message.ts';

const kinds = {
  request: 0,
  response: 1,
  unknownCommand: 2,
  register: 3,
  confirmed: 5,
  unknownEvent: 6,
  event: 7,
} as const;

/** Of a packet, as the daemon sets it. */
const mostBytes = 512 * KiB;
const lengthBytes = 4;

export type Packet =
  | { readonly kind: 'response'; readonly message: ReadSection }
  /** The registered events are sent from now on. */
  | { readonly kind: 'confirmed' }
  /** The daemon knows no such command, or no such event. */
  | { readonly kind: 'unknown' }
  | { readonly kind: 'event'; readonly name: string; readonly message: ReadSection };

export const requestPacket = (command: string, message: Section): Buffer =>
  framed(kinds.request, command, encodeMessage(message));

export const registerPacket = (event: string): Buffer => framed(kinds.register, event, Buffer.alloc(0));

function framed(kind: number, name: string, message: Buffer): Buffer {
  const head = Buffer.from([0, 0, 0, 0, kind, name.length, ...Buffer.from(name)]);
  const length = head.length - lengthBytes + message.length;
  if (length > mostBytes) throw new ViciError(`${name} has ${length} bytes`);
  head.writeUInt32BE(length);
  return Buffer.concat([head, message]);
}

/** Cuts what comes from the daemon into packets. */
export class PacketReader {
  #rest: Buffer = Buffer.alloc(0);

  /** @throws ViciError: what came is no packet, and nothing after it can be read */
  *read(chunk: Buffer): Generator<Packet, void, void> {
    this.#rest = this.#rest.length === 0 ? chunk : Buffer.concat([this.#rest, chunk]);
    while (this.#rest.length >= lengthBytes) {
      const length = this.#rest.readUInt32BE();
      if (length === 0 || length > mostBytes) throw new ViciError(`a packet has ${length} bytes`);
      if (this.#rest.length < lengthBytes + length) return;
      const packet = this.#rest.subarray(lengthBytes, lengthBytes + length);
      this.#rest = this.#rest.subarray(lengthBytes + length);
      yield packetOf(packet);
    }
  }
}

function packetOf(packet: Buffer): Packet {
  const kind = packet[0];
  switch (kind) {
    case kinds.response:
      return { kind: 'response', message: decodeMessage(packet.subarray(1)) };
    case kinds.confirmed:
      return { kind: 'confirmed' };
    case kinds.unknownCommand:
    case kinds.unknownEvent:
      return { kind: 'unknown' };
    case kinds.event: {
      const end = 2 + (packet[1] ?? 0);
      return { kind: 'event', name: packet.toString('utf8', 2, end), message: decodeMessage(packet.subarray(end)) };
    }
    default:
      throw new ViciError(`a packet is of the kind ${kind}`);
  }
}
