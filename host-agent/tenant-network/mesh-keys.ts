/** Keys of this host's end of the mesh: made here, and the private one never leaves. */
import { readFileSync } from 'node:fs';
import Type from 'typebox';
import { decoder } from '../../lib/decode.ts';
import type { Log } from '../../lib/log.ts';
import { writePrivateFile } from '../../lib/process/private-file.ts';
import { newWireguardKeys, type WireguardKeys } from '../../lib/wireguard-keys.ts';
import { MeshEnd } from '../../schemas/wire/mesh.ts';

const { key } = MeshEnd.properties;
const decodeKeys = decoder(Type.Object({ publicKey: key, privateKey: key }));

/** New ones take the place of those that are lost or damaged; other hosts learn the public one. */
export function keepMeshKeys(file: string, log: Log): WireguardKeys {
  try {
    return decodeKeys(readFileSync(file));
  } catch (error) {
    const isAbsent = (error as NodeJS.ErrnoException).code === 'ENOENT';
    if (!isAbsent) log.warn('mesh_keys_damaged', { file, error });
    const keys = newWireguardKeys();
    writePrivateFile(file, JSON.stringify(keys));
    return keys;
  }
}
