import jsqr from 'jsqr';
import t from 'tap';
import { codeLines } from '../../../../cli/tenant/peers/code.ts';

/** Pixels of a module: a reader wants more than one. */
const scale = 4;

/** Each character shows an upper and a lower module. */
const halves: Readonly<Record<string, readonly [upper: boolean, lower: boolean]>> = {
  ' ': [false, false],
  '▀': [true, false],
  '▄': [false, true],
  '█': [true, true],
};

/** Text of the code as a phone's camera reads it from the terminal. */
function read(lines: readonly string[]): string | undefined {
  const rows = lines.flatMap((line) => [0, 1].map((half) => [...line].map((one) => halves[one]?.[half] === true)));
  const [width, height] = [(rows[0]?.length ?? 0) * scale, rows.length * scale];
  const pixels = new Uint8ClampedArray(width * height * 4).fill(255);
  for (let at = 0; at < width * height; at++) {
    const isDark = rows[Math.floor(at / width / scale)]?.[Math.floor((at % width) / scale)] === true;
    if (isDark) pixels.fill(0, at * 4, at * 4 + 3);
  }
  return jsqr.default(pixels, width, height)?.data;
}

t.test('a code that is read from the terminal has the text in it', (t) => {
  const configuration = `[Interface]\nPrivateKey = ${'A'.repeat(43)}=\nAddress = 10.86.0.2/32, fd86::2/128\n\n[Peer]\nPublicKey = ${'B'.repeat(43)}=\nPresharedKey = ${'C'.repeat(43)}=\nAllowedIPs = 0.0.0.0/0, ::/0\nEndpoint = vpn.example.com:51820\nPersistentKeepalive = 25\n`;
  for (const text of ['a', configuration]) {
    const lines = codeLines(text);
    t.equal(read(lines), text);
    t.ok(
      lines.every((line) => line.length === lines[0]?.length && line.length <= 80),
      'a common terminal has room for it',
    );
  }
  t.end();
});
