import { Resvg } from '@resvg/resvg-js';
import jsQR from 'jsqr';
import t from 'tap';
import { qrSvg } from '../../../../../gateway/vpn/render/wireguard/qr.ts';
import { clientConf } from '../../../../../gateway/vpn/render/wireguard/wireguard.ts';
import { limits } from '../../../../../schemas/limits.ts';
import { keys, subjectWith } from '../../support.ts';

// CommonJS, whose types say `default`.
const decode = jsQR.default;

interface Picture {
  readonly width: number;
  readonly height: number;
  readonly pixels: Uint8Array;
}

const svgOf = (text: string): string => {
  const svg = qrSvg(text);
  if (svg === undefined) throw new Error('no picture');
  return svg;
};

const sideOf = (svg: string): number => Number(/viewBox="0 0 (\d+) \1"/.exec(svg)?.[1]);

function draw(svg: string, pixelsPerModule: number): Picture {
  const { width, height, pixels } = new Resvg(svg, {
    fitTo: { mode: 'width', value: sideOf(svg) * pixelsPerModule },
  }).render();
  return { width, height, pixels };
}

function read({ width, height, pixels }: Picture): Buffer {
  const found = decode(new Uint8ClampedArray(pixels), width, height, { inversionAttempts: 'dontInvert' });
  if (found === null) throw new Error('not decoded');
  return Buffer.from(found.binaryData);
}

/** A byte that differs from its neighbours, so that nothing can be moved unseen. */
const textOf = (length: number): string =>
  Array.from({ length }, (_, at) => String.fromCharCode(33 + ((at * 7 + (at >> 4)) % 94))).join('');

const level = (svg: string): number => sideOf(svg);

t.test('a reader finds the text, byte for byte, at two sizes', (t) => {
  const lengths = [1, 2, 14, 15, 16, 17, 100, 250, 348, 512, 777, 1000, 1500, 2000, 2331, 2332, 2600, limits.qrBytes];
  for (const length of lengths) {
    const svg = svgOf(textOf(length));
    for (const scale of [3, 5]) {
      const bytes = read(draw(svg, scale));
      t.ok(bytes.equals(Buffer.from(textOf(length))), `${length} bytes at ${scale} pixels`);
    }
  }
  t.end();
});

t.test('digits and capitals alone are in byte mode as well', (t) => {
  for (const text of ['0123456789', 'HTTPS://EXAMPLE.COM/', '漢字', '日本語のデバイス', 'ünï – 😀']) {
    const found = decode(
      new Uint8ClampedArray(draw(svgOf(text), 4).pixels),
      sideOf(svgOf(text)) * 4,
      sideOf(svgOf(text)) * 4,
    );
    t.same(
      found?.chunks.map(({ type }) => String(type)),
      ['byte'],
      text,
    );
    t.equal(Buffer.from(found?.binaryData ?? []).toString(), text);
  }
  t.end();
});

t.test('a text that is too long has no picture', (t) => {
  t.equal(qrSvg(textOf(limits.qrBytes + 1)), undefined);
  t.equal(qrSvg('é'.repeat(limits.qrBytes / 2 + 1)), undefined, 'bytes count, not characters');
  t.type(qrSvg('é'.repeat(Math.floor(limits.qrBytes / 2))), 'string');
  t.end();
});

t.test('level M as long as it lasts, then L', (t) => {
  const side = (version: number): number => 17 + 4 * version + 8;
  // ISO/IEC 18004 table 7: 348 bytes are version 14 at level M and 12 at L.
  t.equal(level(svgOf(textOf(348))), side(14));
  t.equal(level(svgOf(textOf(2331))), side(40), 'M at its end');
  t.ok(level(svgOf(textOf(2332))) < side(40), 'L has room again');
  t.equal(level(svgOf(textOf(limits.qrBytes))), side(40));
  t.end();
});

t.test('four modules of white are around it, and every pixel is black or white', (t) => {
  const scale = 4;
  const { width, height, pixels } = draw(svgOf(textOf(348)), scale);
  const at = (x: number, y: number): number[] => [...pixels.subarray((y * width + x) * 4, (y * width + x) * 4 + 4)];
  const margin = 4 * scale;
  let faults = 0;
  let dark = 0;
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const colour = at(x, y).join();
      const isMargin = x < margin || y < margin || x >= width - margin || y >= height - margin;
      if (colour === '0,0,0,255' && !isMargin) dark++;
      else if (colour !== '255,255,255,255') faults++;
    }
  }
  t.equal(faults, 0);
  t.ok(dark > (width * height) / 5, 'and there is something to read');
  t.same(at(margin, margin), [0, 0, 0, 255], 'the first module is dark');
  t.end();
});

t.test('the picture holds no text, no script and no link', (t) => {
  const conf = clientConf(subjectWith({ name: '</svg><script>alert(1)</script>' }), keys);
  const svg = svgOf(conf);
  t.match(
    svg,
    /^<svg xmlns="http:\/\/www\.w3\.org\/2000\/svg" viewBox="0 0 \d+ \d+" shape-rendering="crispEdges"><path fill="#fff" d="[MhvHz\d -]+"\/><path d="[Mhvz\d -]+"\/><\/svg>$/,
  );
  t.ok(read(draw(svg, 4)).equals(Buffer.from(conf)));
  t.end();
});
