/** A link with which a browser signs in once, for the gateway of `npm start` (ADR 43). */
import { createHash, randomBytes } from 'node:crypto';
import { rmSync } from 'node:fs';
import { join } from 'node:path';
import { writePrivateFile } from '../../lib/process/private-file.ts';
import type { OneTimeLink } from '../../schemas/api/keys/session.ts';
import type { TenantId } from '../../schemas/ids.ts';
import { limits } from '../../schemas/limits.ts';

/** Undefined with `NODE_ENV=production`: a gateway refuses the folder then. */
export const signInLinks = (stateFolder: string, env: NodeJS.ProcessEnv): string | undefined =>
  env['NODE_ENV'] === 'production' ? undefined : join(stateFolder, 'sign-in-links');

/** Replaces the links of earlier starts. */
export function makeSignInLink(folder: string, baseUrl: string, nowMs: number): string {
  rmSync(folder, { recursive: true, force: true });
  const code = randomBytes(32).toString('base64url');
  const link: OneTimeLink = {
    tenant: 'demo' as TenantId,
    subject: 'demo-user',
    scopes: [],
    untilMs: nowMs + limits.signInLinkMs,
  };
  writePrivateFile(join(folder, createHash('sha256').update(code).digest('hex')), JSON.stringify(link));
  return `${baseUrl}/login/once?code=${code}`;
}
