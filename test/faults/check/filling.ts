/**
 * The filling of a container that is as large as the API allows: variables and a command that show
 * whether they are whole, and made from one number. Pure.
 */
import { KiB } from '../../../schemas/limits/units.ts';

/** Together a little below the limits of a container's variables, and of one of them. */
const variables = ['FILLING_0', 'FILLING_1'] as const;
const variableBytes = 31 * KiB;
/** The same of its command. */
const words = 30;
const wordBytes = 1 * KiB;

/** Variables that are not those of any number. */
export const damaged = -1;

const textOf = (filling: number, part: string, bytes: number): string => {
  const one = `${filling} ${part} `;
  return one.repeat(Math.ceil(bytes / one.length)).slice(0, bytes);
};

export const variablesOf = (filling: number): Record<string, string> =>
  Object.fromEntries(variables.map((name) => [name, textOf(filling, name, variableBytes)]));

export const commandOf = (filling: number): string[] =>
  Array.from({ length: words }, (_, index) => textOf(filling, `word ${index}`, wordBytes));

/** The number that these variables are made from; undefined: they have none of ours. */
export function fillingIn(env: Readonly<Record<string, string>>): number | undefined {
  const named = variables.map((name) => env[name]).find((value) => value !== undefined);
  if (named === undefined) return undefined;
  const filling = Number.parseInt(named, 10);
  const whole = variablesOf(filling);
  return variables.every((name) => env[name] === whole[name]) ? filling : damaged;
}

/** `true` if command and variables are of the same number. */
export function isFilledAlike(env: Readonly<Record<string, string>>, command: readonly string[] = []): boolean {
  const filling = fillingIn(env);
  const wanted = filling === undefined ? [] : commandOf(filling);
  return command.length === wanted.length && command.every((word, index) => word === wanted[index]);
}
