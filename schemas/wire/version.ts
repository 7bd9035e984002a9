/**
 * The version of the protocol between gateways, actors and agents (docs/upgrades.md). It rises by
 * one with each release that goes out. A program understands the messages of its own release, of
 * the one before and of the one after, and refuses all others.
 *
 * Messages carry it in the field `protocol`: JSON messages at their top, a batch of asks in its
 * first ask. A batch of answers begins with a line of it, and of who answers.
 */
export const protocolVersion = 4;

/** Spread into every JSON message. */
export const protocolFields = { protocol: protocolVersion } as const;

/** A message of a release that does not work together with this one. */
export class ProtocolError extends Error {
  constructor(version: unknown) {
    super(
      `the message is of protocol ${JSON.stringify(version) ?? 'unknown'}; this program speaks ${protocolVersion}, and understands ` +
        `${protocolVersion - 1} to ${protocolVersion + 1}: upgrade one release at a time (docs/upgrades.md)`,
    );
    this.name = 'ProtocolError';
  }
}

/**
 * The version of a message's sender.
 * @throws ProtocolError if this program does not understand it.
 */
export function protocolOf(message: unknown): number {
  const given: unknown =
    typeof message === 'object' && message !== null && 'protocol' in message ? message.protocol : undefined;
  if (typeof given !== 'number' || !Number.isInteger(given) || Math.abs(given - protocolVersion) > 1)
    throw new ProtocolError(given);
  return given;
}
