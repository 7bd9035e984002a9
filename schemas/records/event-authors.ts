/** Authors of the events in a message of the stream EVENTS, in a header of the message. */
import Type, { type Static } from 'typebox';
import { Author } from '../api/audit/line.ts';
import { nullable } from '../api/nullable.ts';

export const authorsHeader = 'Longshore-By';

/**
 * In the order of the events: how many have this author, null for none. Events behind the last of
 * these have none.
 */
export const EventAuthors = Type.Array(
  Type.Tuple([Type.Integer({ minimum: 1 }), nullable(Type.Object(Author.properties))]),
);
export type EventAuthors = Static<typeof EventAuthors>;

/** The author of a request is one object, which its events share. */
const texts = new WeakMap<Author, string>();

/** JSON in ASCII, as a header needs it. */
export function authorText(by: Author | null): string {
  if (by === null) return 'null';
  let text = texts.get(by);
  if (text === undefined) {
    const escaped = (unit: string): string => `\\u${unit.charCodeAt(0).toString(16).padStart(4, '0')}`;
    texts.set(by, (text = JSON.stringify(by).replace(/[\u007f-\uffff]/g, escaped)));
  }
  return text;
}
