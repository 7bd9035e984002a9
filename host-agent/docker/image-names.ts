/** Names of images, as engines write them. Pure. */
import { digestPattern } from '../../schemas/api/fields/container.ts';

const isDigest = new RegExp(digestPattern);

/** As Docker shows a reference: `docker.io/library/nginx:1` → `nginx:1`. Podman shows all of it. */
export const familiar = (reference: string): string => reference.replace(/^docker\.io\/(library\/(?=[^/]+$))?/, '');

/** `r.example:5000/team/web:1`, and the same by digest → `r.example:5000/team/web` */
export const repositoryOf = (reference: string): string => reference.replace(/@.*$/, '').replace(/:[^/:]*$/, '');

/**
 * The digest that an image has in the repository of a reference; undefined: it was not pulled from
 * there.
 * @param known `repository@digest`, as the engine has them of the image
 */
export function digestFor(reference: string, known: readonly string[]): string | undefined {
  const repository = familiar(repositoryOf(reference));
  const found = known.find((one) => familiar(repositoryOf(one)) === repository)?.split('@')[1];
  return found !== undefined && isDigest.test(found) ? found : undefined;
}
