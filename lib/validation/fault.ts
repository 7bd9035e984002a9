/** The one fault that describes an invalid value best. Pure. */
import type { TLocalizedValidationError as ValidationError } from 'typebox/error';
import { namesIn, wordsOf } from './words.ts';

/** `/signal must be one of SIGINT, SIGTERM`; a fault of the whole value has no place before it. */
export function firstFault(errors: readonly ValidationError[]): string {
  const [first] = errors;
  if (first === undefined) return 'is invalid';
  const union = errors.find((one) => one.keyword === 'anyOf' && isBelow(one, first));
  if (union === undefined) return errors.map(inWords).find((words) => words !== undefined) ?? 'is invalid';
  const branches = branchesOf(union, errors);
  const [meant] = branches
    .filter((branch) => !branch.some((error) => isOfOther(error, union)))
    .sort((one, other) => sizeOf(one) - sizeOf(other));
  return meant === undefined ? ofNone(union, branches) : firstFault(meant);
}

const isBelow = (union: ValidationError, { schemaPath, instancePath }: ValidationError): boolean =>
  schemaPath.startsWith(`${union.schemaPath}/anyOf/`) && `${instancePath}/`.startsWith(`${union.instancePath}/`);

/** The errors of each branch of a union; unions inside a branch are among them. */
function branchesOf(union: ValidationError, errors: readonly ValidationError[]): ValidationError[][] {
  const branches = new Map<string, ValidationError[]>();
  for (const error of errors.filter((one) => isBelow(union, one))) {
    const branch = error.schemaPath.slice(`${union.schemaPath}/anyOf/`.length).split('/', 1)[0] ?? '';
    branches.set(branch, [...(branches.get(branch) ?? []), error]);
  }
  return [...branches.values()];
}

/**
 * True if the error says that the value is another branch's: another kind of value, or its `type`.
 */
const isOfOther = (error: ValidationError, union: ValidationError): boolean =>
  (error.keyword === 'const' || (error.keyword === 'type' && error.instancePath === union.instancePath)) &&
  // Not of a union inside the branch.
  !error.schemaPath.slice(`${union.schemaPath}/anyOf/`.length).includes('/anyOf/');

const sizeOf = (branch: readonly ValidationError[]): number =>
  branch.reduce((sum, error) => sum + (namesIn(error)?.length ?? 1), 0);

/** The allowed values, for a value that is of no branch. */
function ofNone(union: ValidationError, branches: readonly ValidationError[][]): string {
  const telling = branches.flat().filter((error) => isOfOther(error, union));
  const tags = telling.flatMap((error) => (error.keyword === 'const' ? [error] : []));
  const [tag] = tags;
  if (tag === undefined)
    return placed(union.instancePath, [...new Set(telling.map(wordsOf))].filter(Boolean).join(' or '));
  const known = tags.filter((one) => one.instancePath === tag.instancePath).map((one) => one.params.allowedValue);
  return placed(tag.instancePath, `must be one of ${known.map(String).join(', ')}`);
}

function inWords(error: ValidationError): string | undefined {
  const words = wordsOf(error);
  if (words === undefined) return undefined;
  const places = namesIn(error)?.map((name) => `${error.instancePath}/${name}`) ?? [error.instancePath];
  return placed(places.join(', '), words);
}

const placed = (place: string, words: string): string => (place === '' ? words : `${place} ${words}`);
