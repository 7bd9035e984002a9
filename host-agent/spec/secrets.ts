/**
 * Secrets of this host: files in one folder, named by `secret_refs`. Their values appear in a
 * container's environment only.
 */
import { readFile } from 'node:fs/promises';
import { join } from 'node:path';
import type { SecretRef } from '../../schemas/api/container.ts';

export type Secrets =
  | { readonly kind: 'resolved'; readonly env: Readonly<Record<string, string>> }
  | { readonly kind: 'missing'; readonly secret: string };

/**
 * One trailing newline is not part of a secret. Names are checked by the schema: no slash, no dot.
 */
export async function resolveSecrets(folder: string | undefined, refs: readonly SecretRef[]): Promise<Secrets> {
  const env: [name: string, text: string][] = [];
  for (const { env: name, secret } of refs) {
    if (folder === undefined) return { kind: 'missing', secret };
    try {
      env.push([name, (await readFile(join(folder, secret), 'utf8')).replace(/\r?\n$/, '')]);
    } catch {
      return { kind: 'missing', secret };
    }
  }
  // An assignment would lose a variable of the name `__proto__`.
  return { kind: 'resolved', env: Object.fromEntries(env) };
}
