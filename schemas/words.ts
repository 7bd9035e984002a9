/**
 * Words and forms of the API that the command line needs at each start. They are here, apart from
 * the schemas that are made of them, because TypeBox takes longer to load than all of a simple
 * command.
 */

/** A UUID of any version in lower case, as `:id` of a path. */
export const uuidPattern = '^[0-9a-f]{8}-[0-9a-f]{4}-[1-8][0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$';
export const networkNamePattern = '^[a-z0-9](?:[a-z0-9-]{0,13}[a-z0-9])?$';

/** A container's network: that of its tenant, or none. */
export const networkModes = ['tenant', 'none'] as const;

/** ARCHITECTURE.md, "Status", describes each status and what may follow it. */
export const containerStatuses = [
  'pending',
  'pulling',
  'starting',
  'running',
  'backoff',
  'stopping',
  'stopped',
  'failed',
  'unknown',
  'lost',
  'removing',
] as const;

/**
 * - `always`: it is started again whenever it ends.
 * - `on_failure`: unless it ends with exit code 0.
 * - `never`: it runs once; only a start by its tenant runs it again.
 */
export const restartPolicies = ['always', 'on_failure', 'never'] as const;

/** Signals that a program may take as its stop. */
export const stopSignals = [
  'SIGTERM',
  'SIGINT',
  'SIGQUIT',
  'SIGHUP',
  'SIGUSR1',
  'SIGUSR2',
  'SIGWINCH',
  'SIGABRT',
  'SIGKILL',
  'SIGRTMIN+3',
] as const;

/** Subprotocols of the WebSocket of a session. */
export const execProtocol = 'longshore.exec.v1';
export const forwardProtocol = 'longshore.forward.v1';
