export function qrSvg(_text: string): string | undefined {
  throw new Error('to come');
}
