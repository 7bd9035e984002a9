import t from 'tap';
import { hasControls, oneLine, visible, visibleLines, withoutControls } from '../../schemas/visible.ts';

const obeyed = [
  ...Array.from({ length: 0x20 }, (_, code) => code),
  ...Array.from({ length: 0x21 }, (_, at) => 0x7f + at),
  ...[0x061c, 0x200e, 0x200f, 0x202a, 0x202b, 0x202c, 0x202d, 0x202e, 0x2066, 0x2067, 0x2068, 0x2069],
];
const lineBreakOrTab = [0x09, 0x0a];
/** Joiners of zero width, no-break spaces, combining marks, letters of two directions, an emoji. */
const letters = ['\u200b', '\u200c', '\u200d', '\u00a0', 'e\u0301', 'ש', 'ب', '👩\u200d🚀', '~', ' ', '\u2060'];

t.test('a character that a terminal obeys is an escape that JSON reads as the same character', (t) => {
  for (const code of obeyed) {
    const text = `a${String.fromCharCode(code)}b`;
    t.ok(hasControls(text), code.toString(16));
    t.match(visible(text), /^a\\(?:[tnr]|u[0-9a-f]{4})b$/);
    t.equal(JSON.parse(`"${visible(text)}"`), text);
    const isKept = lineBreakOrTab.includes(code);
    t.equal(visibleLines(text), isKept ? text : visible(text));
    t.equal(withoutControls(text), isKept ? text : 'a\ufffdb');
  }
  t.end();
});

t.test('letters stay, joiners of zero width among them', (t) => {
  for (const text of letters)
    for (const change of [visible, visibleLines, withoutControls, oneLine]) t.equal(change(text), text);
  t.end();
});

t.test('line ends of two characters are line ends; a value in a line begins no other', (t) => {
  t.equal(visibleLines('a\r\nb\rc'), 'a\nb\\rc');
  t.equal(withoutControls('a\r\nb\rc'), 'a\nb\ufffdc');
  t.equal(oneLine('a\r\n\tb\v\u0085\u2028\u001b'), 'a\\r\\n\\tb\\u000b\\u0085\\u2028\u001b');
  t.end();
});
