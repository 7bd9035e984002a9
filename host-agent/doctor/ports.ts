/** PUBLISH_PORTS against the ports that this machine uses or gives to outgoing connections. */
import type { PortRange } from '../sandbox/shape.ts';
import { ok, warn, type Finding } from './finding.ts';

/** Ports in use that one line of the doctor names. */
const doctorPortsNamed = 8;

/** Local ports of `/proc/net/tcp` and its like that listen, or of UDP, that are bound (proc(5)). */
export function portsIn(table: string): number[] {
  return table
    .split('\n')
    .slice(1)
    .flatMap((line) => {
      const [, local = '', , state = ''] = line.trim().split(/\s+/);
      // 0A: TCP listens; 07: a UDP socket without a peer.
      if (state !== '0A' && state !== '07') return [];
      const port = Number.parseInt(local.split(':')[1] ?? '', 16);
      return Number.isNaN(port) ? [] : [port];
    });
}

/** Parses `32768\t60999` (ip_local_port_range); `undefined` if the text has another form. */
export function localRange(text: string): PortRange | undefined {
  const [, first, last] = /^(\d+)\s+(\d+)\s*$/.exec(text) ?? [];
  return first === undefined || last === undefined ? undefined : { first: Number(first), last: Number(last) };
}

export interface PortFacts {
  readonly range: PortRange;
  /** `undefined` if unknown. */
  readonly outgoing: PortRange | undefined;
  readonly listening: readonly number[];
  /** Ports that containers of the engine publish. */
  readonly published: ReadonlySet<number>;
}

/** Pure. */
export function judgePorts({ range, outgoing, listening, published }: PortFacts): Finding[] {
  const name = `PUBLISH_PORTS ${range.first}-${range.last}`;
  const remedy = 'give PUBLISH_PORTS a range of its own';
  const findings: Finding[] = [];
  if (outgoing !== undefined && range.first <= outgoing.last && outgoing.first <= range.last) {
    const says = `${name} overlaps the ports of outgoing connections, ${outgoing.first}-${outgoing.last}`;
    findings.push(
      warn(
        'ports',
        `${says}: a connection may hold one that a container wants`,
        `${remedy}, or move ip_local_port_range`,
      ),
    );
  }
  const foreign = [...new Set(listening)]
    .filter((port) => port >= range.first && port <= range.last && !published.has(port))
    .toSorted((left, right) => left - right);
  if (foreign.length > 0) {
    const shown = foreign.slice(0, doctorPortsNamed).join(', ');
    const more = foreign.length > doctorPortsNamed ? ` and ${foreign.length - doctorPortsNamed} more` : '';
    findings.push(
      warn('ports', `other programs listen within ${name}: ${shown}${more}`, `${remedy}, or move these programs`),
    );
  }
  return findings.length > 0 ? findings : [ok('ports', `${name} is free for containers`)];
}
