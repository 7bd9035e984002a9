/** What the operator is told, in one line, when a backup or a restore can't be made. */
export class BackupError extends Error {
  constructor(what: string, cause?: unknown) {
    super(what, { cause });
    this.name = 'BackupError';
  }
}

/** Of whatever was thrown, what the operator is told. */
export const reasonOf = (error: unknown): string => (error instanceof Error ? error.message : String(error));
