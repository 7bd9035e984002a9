/** Colours of status words, on a terminal that shows them. */
import type { Context } from '../context.ts';
import type { Text } from './output.ts';

const codes = { green: 32, red: 31, yellow: 33, grey: 90 } as const;
type Colour = keyof typeof codes;

/** Statuses of containers and hosts, states of peers, and the marks of `doctor`. */
const words: Readonly<Record<Colour, readonly string[]>> = {
  green: ['running', 'up', 'active', '✓'],
  red: ['failed', 'lost', 'fenced', 'expired', '✗'],
  yellow: ['pending', 'pulling', 'starting', 'backoff', 'stopping', 'removing', 'unknown', 'joining'],
  grey: ['stopped', 'removed', 'disabled'],
};
const colours = new Map(
  Object.entries(words).flatMap(([colour, all]) => all.map((word) => [word, codes[colour as Colour]] as const)),
);

/** Paints the word that a text begins with; leaves other texts unchanged. */
export type Paint = (text: string) => Text;

export const plain: Paint = (text) => text;
export const painted: Paint = (text) => {
  const [word = ''] = /^[^\s,:]+/.exec(text) ?? [];
  const code = colours.get(word);
  return code === undefined ? text : [{ sgr: String(code) }, word, { sgr: '39' }, text.slice(word.length)];
};

/**
 * True for colours: decided by `NO_COLOR` (no-color.org), then `FORCE_COLOR`, then the terminal.
 */
export function isColoured(env: NodeJS.ProcessEnv, { isTTY }: { readonly isTTY?: boolean }): boolean {
  if ((env['NO_COLOR'] ?? '') !== '') return false;
  const forced = env['FORCE_COLOR'] ?? '';
  if (forced !== '') return forced !== '0';
  return isTTY === true && env['TERM'] !== 'dumb';
}

/** Paint for the output of a command, or for lines beside it; none with `--json`. */
export const paintOf = (
  { terminal, isJson }: Pick<Context, 'terminal' | 'isJson'>,
  to: 'stdout' | 'stderr' = 'stdout',
): Paint => (!isJson && isColoured(terminal.env, terminal[to]) ? painted : plain);
