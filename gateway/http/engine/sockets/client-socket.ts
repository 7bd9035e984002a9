/** A WebSocket as both engines have it. */

export interface ClientSocket {
  /**
   * Sends text, or bytes as a binary message. False if the client reads more slowly than we write:
   * send no more until `onDrain`.
   */
  send(message: string | Uint8Array): boolean;
  ping(): void;
  /** Ends it, after what was sent before. Does nothing once it has ended. */
  close(code: number, reason: string): void;
}

export interface ClientSocketListener {
  /** The bytes are the listener's own. */
  onMessage(bytes: Uint8Array, isBinary: boolean): void;
  onPong(): void;
  onDrain(): void;
  /** Called once, whichever end it was; nothing follows. */
  onClose(): void;
}
