/** Names of images, as engines write them. Pure. */
import { digestPattern } from '../../schemas/api/fields/container.ts';

const isDigest = new RegExp(digestPattern);

/**
 * The familiar form of a reference, which Docker shows: `docker.io/library/nginx:1` → `nginx:1`.
 * Podman shows the full form.
 */
export const familiar = (reference: string): string => reference.replace(/^docker\.io\/(library\/(?=[^/]+$))?/, '');

/** `r.example:5000/team/web:1`, and the same by digest → `r.example:5000/team/web` */
export const repositoryOf = (reference: string): string => reference.replace(/@.*$/, '').replace(/:[^/:]*$/, '');

/**
 * The digest of an image in the repository of a reference; `undefined` if it was not pulled from
 * there.
 * @param known the engine's `repository@digest` names of the image
 */
export function digestFor(reference: string, known: readonly string[]): string | undefined {
  const repository = familiar(repositoryOf(reference));
  const found = known.find((one) => familiar(repositoryOf(one)) === repository)?.split('@')[1];
  return found !== undefined && isDigest.test(found) ? found : undefined;
}
