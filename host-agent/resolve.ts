/** Names to addresses, as the engine on this machine resolves them: with the hosts file, then DNS. */
import { lookup } from 'node:dns/promises';
import type { Resolve } from './registries.ts';

export const systemResolve: Resolve = async (name) =>
  (await lookup(name, { all: true, verbatim: true })).map(({ address }) => address);
