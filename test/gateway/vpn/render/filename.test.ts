import fc from 'fast-check';
import t from 'tap';
import { attachment, fileName } from '../../../../gateway/vpn/render/filename.ts';
import type { PeerId } from '../../../../schemas/ids.ts';
import { breaking, label, nasty, peerId } from '../support.ts';

const own = 'peer-2e3f4a5b';

t.test('of a name what is fit stays', (t) => {
  const table: readonly (readonly [name: string, base: string])[] = [
    ['phone', 'phone'],
    ['a_b', 'a_b'],
    ['anna-laptop-1', 'anna-laptop-1'],
    ['Ann’s Phone', 'Ann-s-2e3f4a5b'],
    ['Zoë', 'Zoe-2e3f4a5b'],
    ['Phone', 'Phone-2e3f4a5b'],
    ['ﬁle ①', 'file-1-2e3f4a5b'],
    ['v1.2+x=y', 'v1-2-x-2e3f4a5b'],
    ['anna-macbook-pro-work', 'anna-m-2e3f4a5b'],
    ['0123456789abcd efg', '012345-2e3f4a5b'],
    ['012345678 abcdefg', '012345-2e3f4a5b'],
    ['--x--', 'x-2e3f4a5b'],
    ['.hidden', 'hidden-2e3f4a5b'],
    ['Ａ', 'A-2e3f4a5b'],
    ['eth0', 'eth0-2e3f4a5b'],
    ['wlan0', 'wlan0-2e3f4a5b'],
    ['docker0', 'docker-2e3f4a5b'],
    ['dev', 'dev-2e3f4a5b'],
    ['up', 'up-2e3f4a5b'],
    ['ty', 'ty-2e3f4a5b'],
    ['gso_max_size', 'gso_ma-2e3f4a5b'],
    ['bonding_masters', 'bondin-2e3f4a5b'],
    ['电话', own],
    ['', own],
    ['...', own],
    ['con', own],
    ['CON', own],
    ['nul.txt', 'nul-tx-2e3f4a5b'],
    ['LPT¹', own],
    ['com7', own],
    ['aux ', own],
    ['lo', own],
    ['default', own],
    ['zoe-2e3f4a5b', 'zoe-2e-2e3f4a5b'],
    ['peer-01234567', 'peer-0-2e3f4a5b'],
    ['zoe-4a5b', 'zoe-4a5b'],
    ['a-deadbeet', 'a-deadbeet'],
    ['COM10', 'COM10-2e3f4a5b'],
  ];
  for (const [name, base] of table) t.equal(fileName(name, peerId, 'conf'), `${base}.conf`, name);
  t.end();
});

t.test('two names never give one file', (t) => {
  const other = peerId.replace(/2e3f4a5b$/, '2e3f7c8d') as PeerId;
  const pairs = [
    ['anna-macbook-pro-work', 'anna-macbook-pro-home'],
    ['Anna', 'anna'],
    ['anna laptop', 'anna-laptop'],
    ['zoë', 'zoe'],
    ['电话', '手机'],
    ['Zoë', 'zoe-2e3f4a5b'],
    ['电话', 'peer-2e3f4a5b'],
    ['anna-macbook-pro-work', 'anna-m-2e3f4a5b'],
  ];
  for (const [one = '', two = ''] of pairs) {
    const files = [fileName(one, peerId, 'p12'), fileName(two, other, 'p12')].map((file) => file.toLowerCase());
    t.not(files[0], files[1], `${one}, ${two}`);
  }
  const near = peerId.replace(/2e3f4a5b$/, '9a9b4a5b') as PeerId;
  t.not(fileName('Zoë', peerId, 'conf'), fileName('Zoé', near, 'conf'), 'four digits that are the same');
  t.end();
});

t.test('every name gives one that wg-quick, Windows and a header take', (t) => {
  const check = (name: string): void => {
    const file = fileName(name, peerId, 'mobileconfig');
    const [, base = ''] = /^([A-Za-z0-9_][A-Za-z0-9_-]{0,14})\.mobileconfig$/.exec(file) ?? [];
    if (base === '') throw new Error(file);
    if (/^(?:con|prn|aux|nul|com\d|lpt\d)$/i.test(base)) throw new Error(file);
    if (!/^attachment; filename="[!-~]+"$/.test(attachment(file))) throw new Error(file);
  };
  fc.assert(fc.property(fc.string({ unit: 'binary', maxLength: 100 }), check), { numRuns: 2000 });
  fc.assert(fc.property(fc.string({ unit: 'grapheme', maxLength: 100 }), check), { numRuns: 2000 });
  for (const name of nasty) t.doesNotThrow(() => check(name), label(name));
  t.end();
});

t.test('a text that is not a file’s name or an extension of ours goes into no header', (t) => {
  for (const text of breaking) t.throws(() => attachment(text), label(text));
  for (const extension of nasty) t.throws(() => fileName('a', peerId, extension));
  t.throws(() => fileName('', 'x"; y' as PeerId, 'conf'));
  t.end();
});
