/** Values of options, as a person types them. */
import { InvalidArgumentError } from 'commander';
import { limits } from '../../schemas/limits.ts';

/** Reads a whole number. What it returns throws InvalidArgumentError. */
export const wholeNumber =
  (least: number, most: number) =>
  (text: string): number => {
    const value = /^\d{1,15}$/.test(text) ? Number(text) : Number.NaN;
    if (value >= least && value <= most) return value;
    throw new InvalidArgumentError(`It must be a whole number from ${least} to ${most}.`);
  };

export const portNumber = wholeNumber(1, 65_535);
export const waitSeconds = wholeNumber(1, limits.cliWaitSecondsMax);

/** An option that may be given several times. */
export const collect = (value: string, before: readonly string[] = []): string[] => [...before, value];
