/**
 * A request to the control plane: subject, payload, timeout. Rejects without an answer in time, or
 * without a connection.
 */
export type Request = (subject: string, payload: string, timeoutMs: number) => Promise<Uint8Array>;
