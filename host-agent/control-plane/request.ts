/** A question to the control plane, by subject and payload. Rejects where no answer comes in time. */
export type Request = (subject: string, payload: string, timeoutMs: number) => Promise<Uint8Array>;
