import type { PeerId } from '../../schemas/ids.ts';

export function fileName(_name: string, _id: PeerId, _extension: string): string {
  throw new Error('to come');
}
/** Value of Content-Disposition for a name that `fileName` gave. */
export const attachment = (file: string): string => `attachment; filename="${file}"`;
