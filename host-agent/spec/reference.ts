/** The name of the image that a container declares. Pure. */
import { digestPattern, registryPattern, repositoryPattern, tagPattern } from '../../schemas/api/fields/container.ts';
import type { DesiredContainer } from '../../schemas/wire/host.ts';

export type Reference =
  | { readonly kind: 'image'; readonly reference: string }
  | { readonly kind: 'missing' }
  | { readonly kind: 'invalid'; readonly message: string };

const grammar = {
  registry: new RegExp(registryPattern),
  repository: new RegExp(repositoryPattern),
  tag: new RegExp(tagPattern),
  digest: new RegExp(digestPattern),
};

/**
 * The digest that an image has in the repository of a reference; undefined: it was not pulled from
 * there.
 * @param known `repository@digest`, as the engine has them of the image
 */
export function digestFor(reference: string, known: readonly string[]): string | undefined {
  const repository = familiar(repositoryOf(reference));
  const found = known.find((one) => familiar(repositoryOf(one)) === repository)?.split('@')[1];
  return found !== undefined && grammar.digest.test(found) ? found : undefined;
}

/** `r.example:5000/team/web:1`, and the same by digest → `r.example:5000/team/web` */
export const repositoryOf = (reference: string): string => reference.replace(/@.*$/, '').replace(/:[^/:]*$/, '');

/** Docker leaves out its own registry and the folder of its official images. */
const familiar = (repository: string): string => repository.replace(/^(?:docker\.io\/)?(?:library\/)?/, '');

/**
 * The image by name. A digest wins over a tag. Checked again here, because it goes into a URL path.
 */
export function referenceOf(container: DesiredContainer): Reference {
  const { registry, repository, tag, digest } = container;
  if (repository === null) return { kind: 'missing' };
  const faults = [
    grammar.registry.test(registry) ? [] : ['registry'],
    grammar.repository.test(repository) ? [] : ['repository'],
    digest === null || grammar.digest.test(digest) ? [] : ['digest'],
    tag === null || grammar.tag.test(tag) ? [] : ['tag'],
  ].flat();
  if (faults.length > 0) return { kind: 'invalid', message: `invalid ${faults.join(', ')}` };
  const name = `${registry}/${repository}`;
  return { kind: 'image', reference: digest === null ? `${name}:${tag ?? 'latest'}` : `${name}@${digest}` };
}
