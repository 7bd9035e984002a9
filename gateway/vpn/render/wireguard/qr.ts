/**
 * Renders a text as a QR code (ISO/IEC 18004) in SVG, without text or script: one path of squares
 * on white.
 */
import qrcode from 'qrcode';
import { limits } from '../../../../schemas/limits.ts';

/** ISO/IEC 18004 table 7: bytes in a version 40 symbol at level M. */
const mediumBytes = 2331;

/** The margin that a reader needs, in modules. */
const quietZone = 4;

/** Runs of dark modules, row by row: `M<x> <y>h<length>v1h-<length>z`. */
function pathOf(modules: { readonly size: number; readonly data: ArrayLike<number> }): string {
  const { size, data } = modules;
  let path = '';
  for (let row = 0; row < size; row++) {
    for (let from = 0, to = 0; from < size; from = to + 1) {
      for (to = from; to < size && data[row * size + to] === 1; to++);
      if (to > from) path += `M${from + quietZone} ${row + quietZone}h${to - from}v1h${from - to}z`;
    }
  }
  return path;
}

/** Returns undefined if the text is too long for a QR code. */
export function qrSvg(text: string): string | undefined {
  const bytes = Buffer.from(text);
  if (bytes.byteLength > limits.qrBytes) return undefined;
  const { modules } = qrcode.create([{ data: bytes, mode: 'byte' }], {
    errorCorrectionLevel: bytes.byteLength > mediumBytes ? 'L' : 'M',
  });
  const side = modules.size + 2 * quietZone;
  return (
    `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 ${side} ${side}" shape-rendering="crispEdges">` +
    `<path fill="#fff" d="M0 0h${side}v${side}H0z"/><path d="${pathOf(modules)}"/></svg>`
  );
}
