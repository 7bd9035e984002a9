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
