/** The message of any thrown value, as people read it. */
export const messageOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
