/** What is counted of sandboxes. */

/** Where the sandbox of a container came from. */
export type SandboxSource = 'ready' | 'made' | 'kept';

export interface SandboxCounts {
  readonly ready: number;
  readonly used: number;
}
