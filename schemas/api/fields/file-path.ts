/** Allowed paths of files in a container, both of secrets and of its document. Pure. */
import { limits } from '../../limits.ts';

// eslint-disable-next-line no-control-regex -- what it refuses
const control = /[\u0000-\u001f\u007f]/;
const loneSurrogate = /\p{Surrogate}/u;
const ofKernel = new Set(['proc', 'sys', 'dev']);

/** @param all paths of the container's files of this kind: none lies below another */
export function faultOfPath(path: string, all: readonly string[]): string | undefined {
  if (!path.startsWith('/') || path.length > limits.secretPathChars || control.test(path) || loneSurrogate.test(path))
    return `must be an absolute path of at most ${limits.secretPathChars} characters without control characters`;
  const parts = path.slice(1).split('/');
  if (parts.some((part) => part === '' || part === '.' || part === '..'))
    return 'must name a file, without empty parts, "." and ".."';
  if (ofKernel.has(parts[0] ?? '')) return 'must not be below /proc, /sys or /dev';
  return all.some((other) => path.startsWith(`${other}/`)) ? 'is below another file' : undefined;
}

/** True if the path is one of the others, or one of both is below the other. */
export const crosses = (path: string, others: readonly string[]): boolean =>
  others.some((other) => other === path || other.startsWith(`${path}/`) || path.startsWith(`${other}/`));
