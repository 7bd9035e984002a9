/** Configurations of WireGuard, as `wg syncconf` reads and `wg showconf` prints them. Pure. */
import { formatCidr, parseCidr } from '../../schemas/cidr.ts';

/** Address and port of another end. Without it, this end waits for packets of the other. */
const endpoint = 'Endpoint';

/**
 * `true` if an interface with the output `printed` has the configuration.
 * @param hasEndpoints `false` to leave out the addresses of other ends, because WireGuard itself
 * follows ends that move
 */
export function isConfigured(printed: string, configuration: string, hasEndpoints: boolean): boolean {
  const isSame = (rangesOf: (list: string) => string): boolean =>
    settingsIn(printed, hasEndpoints, rangesOf) === settingsIn(configuration, hasEndpoints, rangesOf);
  // Mostly both write an address in one form, and this comparison is a tenth of the work.
  return isSame(asWritten) || isSame(inOneForm);
}

function settingsIn(configuration: string, hasEndpoints: boolean, rangesOf: (list: string) => string): string {
  const sections: string[][] = [];
  for (const line of configuration.split('\n')) {
    if (line.startsWith('[')) sections.push([line]);
    const at = line.indexOf(' = ');
    if (at === -1) continue;
    const [name, value] = [line.slice(0, at), line.slice(at + ' = '.length)];
    if (name === endpoint && !hasEndpoints) continue;
    sections.at(-1)?.push(`${name} ${name === 'AllowedIPs' ? rangesOf(value) : value}`);
  }
  return sections
    .map((lines) => lines.sort().join('\n'))
    .sort()
    .join('\n');
}

const asWritten = (list: string): string => list.split(', ').sort().join(' ');

const inOneForm = (list: string): string =>
  list
    .split(', ')
    .map((text) => {
      const range = parseCidr(text);
      return range === undefined ? text : formatCidr(range);
    })
    .sort()
    .join(' ');

const peerSection = '[Peer]';
const keyOf = (section: string): string => /^PublicKey = (.+)$/m.exec(section)?.[1] ?? '';

/** The section of the interface, under the empty key, and those of peers by their keys. */
const sectionsOf = (configuration: string): Map<string, string> =>
  new Map(
    configuration.split(`${peerSection}\n`).map((section, at) => [at === 0 ? '' : keyOf(section), section.trimEnd()]),
  );

export interface PeersChange {
  /** Input for `wg addconf`: each peer with all of its settings, which replace the earlier ones. */
  readonly added: string;
  /** The public keys of the removed peers. */
  readonly removed: readonly string[];
}

/**
 * The change from the first configuration to the second; `undefined` if more than the peers has
 * changed.
 */
export function peersChange(before: string, after: string): PeersChange | undefined {
  const [had, has] = [sectionsOf(before), sectionsOf(after)];
  if (had.get('') !== has.get('')) return undefined;
  const news = [...has].filter(([key, section]) => had.get(key) !== section);
  return {
    added: news.map(([, section]) => `${peerSection}\n${section}\n`).join(''),
    removed: [...had.keys()].filter((key) => !has.has(key)),
  };
}
