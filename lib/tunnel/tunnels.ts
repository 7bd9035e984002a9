/** The tunnels that a program holds the ends of: looked after together, and ended together. */
import type { SessionEnd } from '../../schemas/wire/session.ts';
import { limits } from '../../schemas/limits.ts';
import { Tunnel, type TunnelParts } from './tunnel.ts';

export class Tunnels {
  readonly #open = new Set<Tunnel>();
  #timer: NodeJS.Timeout | undefined;

  get count(): number {
    return this.#open.size;
  }

  add(parts: TunnelParts): Tunnel {
    const tunnel = new Tunnel({
      ...parts,
      onEnded: (end) => {
        this.#open.delete(tunnel);
        if (this.#open.size === 0) this.#rest();
        parts.onEnded(end);
      },
    });
    this.#open.add(tunnel);
    this.#timer ??= setInterval(() => this.#look(), limits.sessionLookMs).unref();
    return tunnel;
  }

  endAll(end: SessionEnd): void {
    for (const tunnel of [...this.#open]) tunnel.end(end);
  }

  #look(): void {
    for (const tunnel of [...this.#open]) tunnel.look();
  }

  #rest(): void {
    clearInterval(this.#timer);
    this.#timer = undefined;
  }
}
