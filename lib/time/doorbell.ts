/** A wait that another part of the process ends. */

/** Wakes a waiter; a ring without a waiter is kept for the next wait. */
export class Doorbell {
  #rung = false;
  #wake: (() => void) | undefined;

  ring(): void {
    this.#rung = true;
    this.#wake?.();
  }

  /** Forgets a ring that had no waiter. */
  hush(): void {
    this.#rung = false;
  }

  /** Waits until it rings or `ms` have passed; returns whether it rang. */
  async wait(ms: number): Promise<boolean> {
    if (!this.#rung) {
      let timer: NodeJS.Timeout | undefined;
      await new Promise<void>((resolve) => {
        this.#wake = resolve;
        timer = setTimeout(resolve, ms);
      });
      clearTimeout(timer);
      this.#wake = undefined;
    }
    const rung = this.#rung;
    this.#rung = false;
    return rung;
  }
}
