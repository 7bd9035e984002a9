/** A backup or a restore failed; the operator reads the message, which is one line. */
export class BackupError extends Error {
  constructor(what: string, cause?: unknown) {
    super(what, { cause });
    this.name = 'BackupError';
  }
}
