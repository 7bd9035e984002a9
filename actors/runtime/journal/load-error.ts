/** Acknowledged writes may be missing: the partition is not served from what was read. */
export class LoadError extends Error {
  constructor(what: string) {
    super(what);
    this.name = 'LoadError';
  }
}
