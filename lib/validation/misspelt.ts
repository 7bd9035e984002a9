/** The name that a person meant by a misspelt one. Pure. */
import { distance } from 'fastest-levenshtein';

/** Number of letters that may differ: one in a short name, since `id` is no misspelt `tag`. */
const mostWrong = (name: string): number => (name.length < 5 ? 1 : 2);

export function meant(given: string, known: readonly string[]): string | undefined {
  const lower = given.toLowerCase().replaceAll('-', '_');
  return known
    .map((name) => ({ name, wrong: distance(lower, name) }))
    .filter(({ wrong }) => wrong <= mostWrong(given))
    .sort((one, other) => one.wrong - other.wrong)[0]?.name;
}
