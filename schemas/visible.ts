/**
 * Characters that a terminal obeys in place of showing them: C0, DEL, C1 (ECMA-48), and those that
 * change the direction of text (Unicode, UAX #9). Joiners of zero width are letters of some
 * scripts, so they are none of these. Pure, without TypeBox for a quick start of cli/.
 */
const direction = '\\u061c\\u200e\\u200f\\u202a-\\u202e\\u2066-\\u2069';
const controls = new RegExp(`[\\u0000-\\u001f\\u007f-\\u009f${direction}]`);
const each = new RegExp(controls, 'g');
const eachInLines = new RegExp(`[\\u0000-\\u0008\\u000b-\\u001f\\u007f-\\u009f${direction}]`, 'g');
const eachBreak = /[\t-\r\u0085\u2028\u2029]/g;

const names: Readonly<Record<string, string>> = { '\t': '\\t', '\n': '\\n', '\r': '\\r' };

/** As JSON writes it: `\n`, `\u001b`. In a JSON text it is the same value. */
const escapeOf = (character: string): string =>
  names[character] ?? `\\u${character.charCodeAt(0).toString(16).padStart(4, '0')}`;

export const hasControls = (text: string): boolean => controls.test(text);

/** All of them as escapes, line breaks and tabs too. */
export const visible = (text: string): string => (hasControls(text) ? text.replace(each, escapeOf) : text);

/** The same for a text of several lines: its line breaks and tabs stay. */
export const visibleLines = (text: string): string =>
  hasControls(text) ? text.replaceAll('\r\n', '\n').replace(eachInLines, escapeOf) : text;

/** Only what breaks a line becomes an escape: a value in a line can't begin another. */
export const oneLine = (text: string): string => text.replace(eachBreak, escapeOf);

/** The same with U+FFFD in their place: for a message of others that is kept. */
export const withoutControls = (text: string): string =>
  hasControls(text) ? text.replaceAll('\r\n', '\n').replace(eachInLines, '\ufffd') : text;
