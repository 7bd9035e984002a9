/** Lists that are too long for one message, in parts that each fit one. */
import { Room, line } from '../fill.ts';
import { limits } from '../../schemas/limits.ts';

/** By field, the items of a list, each as JSON. */
type Part<Field extends string> = Record<Field, string[]>;

/** As many items as fit a message; one part at least. An item is a step (lib/time/slices.ts). */
export function* inParts<Field extends string>(
  lists: Readonly<Record<Field, Iterable<unknown>>>,
  maxBytes: number = limits.answerPartBytes,
): Generator<void, Part<Field>[], void> {
  const fields = Object.keys(lists) as Field[];
  const empty = (): Part<Field> => Object.fromEntries(fields.map((field) => [field, []])) as unknown as Part<Field>;
  let part = empty();
  const parts = [part];
  const bounds = { bytes: maxBytes };
  let room = new Room(bounds);
  for (const field of fields) {
    for (const item of lists[field]) {
      const { value, bytes } = line(JSON.stringify(item));
      if (!room.take(bytes)) {
        parts.push((part = empty()));
        room = new Room(bounds);
        room.take(bytes);
      }
      part[field].push(value);
      yield;
    }
  }
  return parts;
}

/** The JSON of a message: `head`, and the lists of the part. */
export function partText(head: object, part: Readonly<Record<string, readonly string[]>>): string {
  const lists = Object.entries(part).map(([field, items]) => `,"${field}":[${items.join(',')}]`);
  return `${JSON.stringify(head).slice(0, -1)}${lists.join('')}}`;
}
