/** Candidates for the end of a line that a person is typing. Pure. */
import type { Argument, Command, Option } from 'commander';
import type { GlobalOptions } from '../context.ts';

/** Things that the server or the file of the profiles has a list of. */
export const namedKinds = ['container', 'secret', 'host', 'network', 'peer', 'profile'] as const;
export type NamedKind = (typeof namedKinds)[number];

export interface Completion {
  /** Whole words that begin with the incomplete one. */
  readonly words: readonly string[];
  /** Kind of names that may stand there, too, each behind `before`. */
  readonly kind?: NamedKind;
  /** `--host=` of `--host=b`. */
  readonly before: string;
  /** The incomplete word. */
  readonly begun: string;
  /** Server that is asked for names. */
  readonly given: Pick<GlobalOptions, 'profile' | 'server'>;
}

interface Place {
  readonly command: Command;
  /** Arguments of the command before this place. */
  readonly position: number;
  /** The option whose value comes next. */
  readonly option?: Option | undefined;
  /** After `--`, nothing is an option. */
  readonly isPlain: boolean;
  readonly given: Completion['given'];
}

/** Arguments that another program reads. */
const foreign = ['command', 'arguments'];

const kindIn = (name: string): NamedKind | undefined => namedKinds.find((kind) => kind === name);

/** The argument at a place; the last one may take all that follow. */
function argumentAt({ command: { registeredArguments }, position }: Place): Argument | undefined {
  const last = registeredArguments.at(-1);
  return registeredArguments[position] ?? (last?.variadic === true ? last : undefined);
}

/**
 * True if another program reads the argument. Optional ones must follow `--`, so that options of
 * longshore may stand before them.
 */
function isForeign(place: Place): boolean {
  const argument = argumentAt(place);
  return argument !== undefined && foreign.includes(argument.name()) && (argument.required || place.isPlain);
}

const optionOf = ({ options }: Command, word: string): Option | undefined =>
  options.find(({ long, short }) => long === word || short === word);

/** The name and the value of `--name=value`. */
function splitOption(word: string): readonly [name: string, value: string | undefined] {
  const at = word.startsWith('--') ? word.indexOf('=') : -1;
  return at < 0 ? [word, undefined] : [word.slice(0, at), word.slice(at + 1)];
}

/** Notes the values of `--profile` and `--server`, wherever they stand. */
const withValue = (given: Completion['given'], option: Option, value: string): Completion['given'] =>
  ['--profile', '--server'].includes(option.long ?? '') ? { ...given, [option.attributeName()]: value } : given;

/** The place behind a word; `undefined` behind an unknown command or words of another program. */
function after(place: Place, word: string): Place | undefined {
  const { command, position, option, isPlain, given } = place;
  if (option !== undefined) return { ...place, option: undefined, given: withValue(given, option, word) };
  if (isForeign(place)) return undefined;
  if (!isPlain && word === '--') return { ...place, isPlain: true };
  if (!isPlain && word.startsWith('-')) {
    const [name, value] = splitOption(word);
    const known = optionOf(command, name);
    if (known === undefined || !known.required) return place;
    return value === undefined ? { ...place, option: known } : { ...place, given: withValue(given, known, value) };
  }
  if (command.commands.length === 0) return { ...place, position: position + 1 };
  const chosen = command.commands.find((one) => one.name() === word || one.aliases().includes(word));
  return chosen === undefined ? undefined : { ...place, command: chosen, position: 0 };
}

const kindOfOption = ({ long, argChoices }: Option): NamedKind | undefined => {
  if (argChoices !== undefined) return undefined;
  const kind = kindIn(long?.slice(2) ?? '');
  // `run --secret` takes NAME=secret.
  return kind === 'secret' ? undefined : kind;
};

/** `container` by its own name; of `secret rm <name>` and `host rm <key>`, that of the group. */
function kindOfArgument(argument: Argument, { parent }: Command): NamedKind | undefined {
  const group = parent?.name() ?? '';
  const isOfGroup = argument.name() === 'key' || (argument.name() === 'name' && group !== 'peer');
  return kindIn(isOfGroup ? group : argument.name());
}

function commandsAt({ command }: Place): string[] {
  return command
    .createHelp()
    .visibleCommands(command)
    .map((one) => one.name());
}

function optionsAt({ command }: Place): string[] {
  const visible = command.createHelp().visibleOptions(command);
  return visible.map(({ long, short }) => long ?? short ?? '');
}

/** @param words the words after `longshore`; the last one is incomplete, and may be empty */
export function completionOf(program: Command, words: readonly string[]): Completion {
  const last = words.at(-1) ?? '';
  let place: Place | undefined = { command: program, position: 0, isPlain: false, given: {} };
  for (const word of words.slice(0, -1)) place &&= after(place, word);
  if (place === undefined) return { words: [], before: '', begun: last, given: {} };
  const { command, given, isPlain } = place;
  const ending = (
    begun: string,
    all: readonly string[],
    kind: NamedKind | undefined,
    before: string = '',
  ): Completion => ({
    words: all.filter((one) => one.startsWith(begun)).map((one) => `${before}${one}`),
    ...(kind === undefined ? {} : { kind }),
    before,
    begun,
    given,
  });
  if (place.option !== undefined) return ending(last, place.option.argChoices ?? [], kindOfOption(place.option));
  if (!isPlain && last.startsWith('-') && !isForeign(place)) {
    const [name, value] = splitOption(last);
    const option = optionOf(command, name);
    if (value === undefined) return ending(last, optionsAt(place), undefined);
    if (option === undefined) return ending(last, [], undefined);
    return ending(value, option.argChoices ?? [], kindOfOption(option), `${name}=`);
  }
  if (command.commands.length > 0) return ending(last, commandsAt(place), undefined);
  const argument = argumentAt(place);
  if (argument === undefined || isForeign(place)) return ending(last, [], undefined);
  return ending(last, argument.argChoices ?? [], kindOfArgument(argument, command));
}
