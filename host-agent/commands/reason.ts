/** A failure in words, for an operator's terminal. */

/** The innermost cause of `fetch` says why; its own message is only "fetch failed". */
export function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  const { cause } = error;
  if (cause instanceof Error) return reasonOf(cause);
  // A name with several addresses, none of which answers.
  if (error instanceof AggregateError && error.message === '') return error.errors.map(reasonOf).join('; ');
  return error.message === '' ? error.name : error.message;
}

/** `true` if the connection failed because the other end's certificate was refused. */
export const isOfCertificate = (why: string): boolean => /certificate|self.signed|issuer|altnames/i.test(why);
