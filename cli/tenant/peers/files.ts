/** The files of a peer: `peer config` and `peer qr`. */
import { writePrivateFile } from '../../../lib/process/private-file.ts';
import { bodyOf } from '../../client/api.ts';
import type { Context } from '../../context.ts';
import { Refused, WrongUsage } from '../../terminal/errors.ts';
import { joined } from '../../terminal/output.ts';
import { findPeer } from '../find.ts';

export const formats = ['wireguard', 'mobileconfig', 'sswan', 'ps1', 'swanctl', 'json', 'p12'] as const;
export type Format = (typeof formats)[number];

interface FileOptions {
  readonly format: Format;
  readonly output?: string;
}

async function bytesOf({ api }: Context, peer: string, format: Format): Promise<Buffer> {
  const path = { peer };
  const parseAs = 'arrayBuffer';
  if (format === 'wireguard')
    return Buffer.from(await bodyOf(api.GET('/api/forage/config/{peer}', { params: { path }, parseAs })));
  if (format === 'p12')
    return Buffer.from(await bodyOf(api.GET('/api/forage/p12/{peer}', { params: { path }, parseAs })));
  const params = { path, query: { format } };
  return Buffer.from(await bodyOf(api.GET('/api/forage/profile/{peer}', { params, parseAs })));
}

/** Writes a file that only its owner may read, because it contains keys of the device. */
function keep({ show }: Context, peer: string, output: string, bytes: Buffer): void {
  writePrivateFile(output, bytes);
  show({ peer, file: output }, output);
}

export async function config(context: Context, name: string, { format, output }: FileOptions): Promise<void> {
  const { stdout } = context.terminal;
  if (format === 'p12' && output === undefined && stdout.isTTY)
    throw new WrongUsage('a p12 file is not text: give it a name with --output');
  const { id } = await findPeer(context, name);
  const bytes = await bytesOf(context, id, format);
  if (output === undefined) stdout.writeFile(bytes);
  else keep(context, id, output, bytes);
}

export async function qr(context: Context, name: string, { output }: { readonly output?: string }): Promise<void> {
  const { api, terminal } = context;
  const { id: peer } = await findPeer(context, name);
  const path = { peer };
  if (output !== undefined) {
    const image = await bodyOf(api.GET('/api/forage/config/{peer}/qr', { params: { path }, parseAs: 'text' }));
    keep(context, peer, output, Buffer.from(image));
    return;
  }
  const { blackOnWhite, codeLines } = await import('./code.ts');
  const lines = codeLines((await bytesOf(context, peer, 'wireguard')).toString());
  const { isTTY, columns } = terminal.stdout;
  const width = lines[0]?.length ?? 0;
  if (isTTY && columns < width) {
    throw new Refused(
      `the code is ${width} columns wide and the terminal ${columns}: make it wider, or write an image with "--output ${name}.svg"`,
    );
  }
  terminal.stdout.write(joined([joined(lines.map(isTTY ? blackOnWhite : String), '\n'), '\n']));
}
