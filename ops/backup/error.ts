/** A backup or a restore failed; the operator reads the message, which is one line. */
export class BackupError extends Error {
  constructor(what: string, cause?: unknown) {
    super(what, { cause });
    this.name = 'BackupError';
  }
}

/** The text that an operator reads about any thrown value. */
export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
