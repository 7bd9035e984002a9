/**
 * The zero-width joiner and non-joiner, which the spelling of several languages and many emoji
 * need. Elsewhere they are invisible and make two different names look alike.
 */

/** RFC 5892 appendix A: either may follow a virama, the sign that joins consonants. */
const virama =
  '[\\u094D\\u09CD\\u0A4D\\u0ACD\\u0B4D\\u0BCD\\u0C4D\\u0CCD\\u0D3B\\u0D3C\\u0D4D\\u0DCA\\u0F84\\u1039\\u1714\\u17D2' +
  '\\u1A60\\u1B44\\u1BAA\\u1BAB\\uA806\\uA8C4\\uA953\\uA9C0\\uAAF6\\uABED\\u{11046}\\u{110B9}\\u{11133}\\u{111C0}]';

/** Scripts whose letters join: there a non-joiner between two letters ends the first one's form. */
const joining = '[\\p{scx=Arab}\\p{scx=Syrc}\\p{scx=Mong}\\p{scx=Nkoo}\\p{scx=Mand}\\p{scx=Adlm}\\p{scx=Rohg}]';

/** UTS #51: emoji that a joiner makes one, each with its selector or its skin. */
const emoji = '(?<=\\p{Extended_Pictographic}(?:\\uFE0F|\\p{Emoji_Modifier})?)\\u200D(?=\\p{Extended_Pictographic})';

const inContext = new RegExp(
  `(?<=${virama})[\\u200C\\u200D]|(?<=${joining}\\p{M}*)\\u200C(?=${joining})|${emoji}`,
  'gu',
);

/** The text without the joiners that belong where they are. */
export const withoutJoiners = (text: string): string => text.replaceAll(inContext, '');
