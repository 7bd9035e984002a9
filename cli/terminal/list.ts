/** Prints lists, in one way for all commands. */
import { Option, type Command } from 'commander';
import { oneLine } from '../../schemas/visible.ts';
import type { Display } from '../context.ts';
import { paintOf } from './colours.ts';
import { tableOf } from './table.ts';

export interface List<Item> {
  readonly items: readonly Item[];
  /** An item for programs (default: the item). */
  readonly toValue?: (item: Item) => unknown;
  /** Cells of an item, by the titles of their columns, in their order. */
  readonly columns: Readonly<Record<string, (item: Item) => string>>;
  /** Titles of the columns that only `-o wide` has. */
  readonly wide?: readonly string[];
  readonly nameOf: (item: Item) => string;
  /** Id that other commands take (default: the name). */
  readonly idOf?: (item: Item) => string;
  /** Text in place of a table without rows. */
  readonly empty: string;
}

/** Prints the list in the chosen form: a table, names, ids, JSON or YAML. */
export function showList<Item>(display: Display, list: List<Item>): void {
  const { terminal, format, show } = display;
  const { items, toValue, nameOf, idOf = nameOf, columns, wide = [], empty } = list;
  if (format === 'name' || format === 'id') {
    const wordOf = format === 'name' ? nameOf : idOf;
    terminal.stdout.write(items.map((item) => `${oneLine(wordOf(item))}\n`).join(''));
    return;
  }
  const shown = Object.entries(columns).filter(([title]) => format === 'wide' || !wide.includes(title));
  const table = tableOf(
    shown.map(([title]) => title),
    items.map((item) => shown.map(([, cellOf]) => cellOf(item))),
    empty,
    { paint: paintOf(display), width: format === 'wide' ? undefined : widthOf(display) },
  );
  show(toValue === undefined ? items : items.map(toValue), table);
}

/** Columns of the terminal; `undefined` if it is a file or a pipe, or has no width. */
const widthOf = ({ terminal: { stdout } }: Display): number | undefined =>
  stdout.isTTY && stdout.columns > 0 ? stdout.columns : undefined;

/** `-o` and `-q` of a command that shows a list. */
export const listing = (command: Command): Command =>
  command
    .addOption(new Option('-o, --output <format>', 'Form of the list').choices(['wide', 'name', 'json', 'yaml']))
    .option('-q, --quiet', 'Print ids alone, or names of what has no ids');

/** `-o` of a command that shows one thing. */
export const showing = (command: Command): Command =>
  command.addOption(new Option('-o, --output <format>', 'Form of the output').choices(['json', 'yaml']));

/** Length of a short id, and of a longer one if short ones are alike. */
const shortIdChars = [8, 12] as const;

/**
 * Ends of ids by which commands know them. A UUIDv7 begins with a time, so the ids of one day have
 * alike beginnings.
 */
export function shortIds(ids: readonly string[]): (id: string) => string {
  const chars = shortIdChars.find((count) => new Set(ids.map((id) => id.slice(-count))).size === ids.length);
  return (id) => (chars === undefined ? id : id.slice(-chars));
}
