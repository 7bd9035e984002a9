/** Channels of an exec session, the first byte of each message (docs/api.md). */
export const channel = { input: 0, output: 1, errors: 2, control: 3 } as const;
