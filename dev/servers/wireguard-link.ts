/**
 * An interface of WireGuard as a device has it: of the kernel or, where it has none, of
 * wireguard-go.
 */
import { retry } from '../../lib/time/retry.ts';

const deadlineMs = 20_000;
const pauseMs = 200;

/**
 * Makes the interface, with a configuration as `wg setconf` reads it, and moves it to a namespace.
 * Its socket stays in the namespace of this process.
 * @param must runs a command
 * @param namespace a name or the path of a file
 */
export async function makeWireguardLink(
  must: (...command: readonly string[]) => Promise<unknown>,
  link: string,
  configuration: string,
  namespace: string,
  signal?: AbortSignal,
): Promise<void> {
  await must('ip', 'link', 'add', link, 'type', 'wireguard').catch(() =>
    // With LOG_LEVEL it keeps the pipes of its output open.
    must('env', '-u', 'LOG_LEVEL', 'wireguard-go', link),
  );
  // wireguard-go returns before its process takes configurations.
  await answering(() => must('wg', 'setconf', link, configuration), signal);
  await must('ip', 'link', 'set', link, 'netns', namespace);
}

/** Tries until it succeeds, or throws its last error. */
export async function answering(attempt: () => Promise<unknown>, signal?: AbortSignal): Promise<void> {
  const endMs = performance.now() + deadlineMs;
  const onFailure = (error: unknown): void => {
    if (performance.now() > endMs) throw error;
  };
  await retry(() => attempt().then(() => true), {
    pauseMs: () => pauseMs,
    onFailure,
    ...(signal === undefined ? {} : { signal }),
  });
  signal?.throwIfAborted();
}
