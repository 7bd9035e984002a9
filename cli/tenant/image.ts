/** The name of an image as Docker reads it (distribution/reference). Pure. */
import { WrongUsage } from '../terminal/errors.ts';

export interface ImageName {
  readonly registry: string;
  readonly repository: string;
  readonly tag?: string;
  readonly digest?: string;
}

const dockerHub = 'docker.io';

/** The first part is a registry if it has a dot or a port, or is `localhost`. */
const isRegistry = (part: string): boolean => /[.:]/.test(part) || part === 'localhost';

/** `nginx:1.27` → docker.io, library/nginx, 1.27. @throws WrongUsage */
export function imageIn(text: string): ImageName {
  const [name = '', digest, ...others] = text.split('@');
  const slash = name.indexOf('/');
  const first = slash < 0 ? '' : name.slice(0, slash);
  const registry = isRegistry(first) ? first : dockerHub;
  const rest = isRegistry(first) ? name.slice(slash + 1) : name;
  const colon = rest.lastIndexOf(':');
  const path = colon < 0 ? rest : rest.slice(0, colon);
  const tag = colon < 0 ? undefined : rest.slice(colon + 1);
  if (path === '' || tag === '' || digest === '' || others.length > 0) {
    throw new WrongUsage(`"${text}" is not an image: it looks like registry.example.com/team/web:1.2`);
  }
  const isOfficial = registry === dockerHub && !path.includes('/');
  return {
    registry,
    repository: isOfficial ? `library/${path}` : path,
    ...(tag === undefined ? {} : { tag }),
    ...(digest === undefined ? {} : { digest }),
  };
}

/** A name for its container: the last part of its repository. */
export const nameFor = ({ repository }: ImageName): string => repository.slice(repository.lastIndexOf('/') + 1);
