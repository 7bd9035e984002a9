/** Configurations of WireGuard, as `wg syncconf` reads and `wg showconf` prints them. Pure. */
import { formatCidr, parseCidr } from '../../schemas/cidr.ts';

/** Address and port of another end: without it, this end waits to be called. */
const endpoint = 'Endpoint';

/**
 * What a configuration sets, in the same form for ours and for what the program prints.
 * @param hasEndpoints false: where other ends are is left out, as WireGuard itself follows those
 *   that move
 */
export function settingsIn(configuration: string, hasEndpoints: boolean): string {
  const sections: string[][] = [];
  for (const line of configuration.split('\n')) {
    if (line.startsWith('[')) sections.push([line]);
    const at = line.indexOf(' = ');
    if (at === -1) continue;
    const [name, value] = [line.slice(0, at), line.slice(at + ' = '.length)];
    if (name === endpoint && !hasEndpoints) continue;
    sections.at(-1)?.push(`${name} ${name === 'AllowedIPs' ? ranges(value) : value}`);
  }
  return sections
    .map((lines) => lines.sort().join('\n'))
    .sort()
    .join('\n');
}

const ranges = (list: string): string =>
  list
    .split(', ')
    .map((text) => {
      const range = parseCidr(text);
      return range === undefined ? text : formatCidr(range);
    })
    .sort()
    .join(' ');
