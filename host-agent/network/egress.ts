/** Parts of private networks that an operator opens to containers, as text and rules. Pure. */
import { formatCidr, parseAddress, parseCidr, type Cidr } from '../../schemas/cidr.ts';

export interface EgressRule {
  /** In the form of nftables. */
  readonly cidr: string;
  readonly family: 4 | 6;
  /** `null` for every protocol and port. */
  readonly service: { readonly protocol: 'tcp' | 'udp'; readonly from: number; readonly to: number } | null;
}

export const egressForm =
  'an address or a network, then :PORT/tcp, :PORT/udp or a range as :FROM-TO/tcp; without ports, all of them';

const shape = /^(?:\[([^\]]*)\]|([^:[\]]*))(?::(\d{1,5})(?:-(\d{1,5}))?\/(tcp|udp))?$/;

/**
 * `10.1.2.0/24:5432/tcp`, `192.0.2.7:32768-60999/tcp`, `[fd00:1::]/64…` as `[fd00:1::/64]:443/tcp`,
 * `10.9.9.9`.
 */
export function parseEgressRule(
  text: string,
): { readonly ok: true; readonly rule: EgressRule } | { readonly ok: false; readonly fault: string } {
  const no = (why: string) => ({ ok: false as const, fault: `"${text.slice(0, 80)}" ${why}` });
  const match = shape.exec(text);
  if (match === null) {
    const hint = /^[^[]*:[^\]]*:/.test(text) ? '; an IPv6 address stands in brackets' : '';
    return no(`is not of the form ${egressForm}${hint}`);
  }
  const [, bracketed, plain = '', from, to = from, protocol] = match;
  const where = bracketed ?? plain;
  const cidr = networkOf(where);
  if (typeof cidr === 'string') return no(cidr);
  const rule = { cidr: formatCidr(cidr), family: cidr.family };
  if (from === undefined || to === undefined) return { ok: true, rule: { ...rule, service: null } };
  const ports = [Number(from), Number(to)] as const;
  if (ports.some((port) => port < 1 || port > 65_535)) return no('has a port that is not from 1 to 65535');
  if (ports[0] > ports[1]) return no('has a range of ports whose end is before its begin');
  return {
    ok: true,
    rule: { ...rule, service: { protocol: protocol as 'tcp' | 'udp', from: ports[0], to: ports[1] } },
  };
}

/** Explains why a text is not a network. */
function networkOf(text: string): Cidr | string {
  const address = parseAddress(text);
  if (address !== undefined)
    return { family: address.family, base: address.value, prefix: address.family === 4 ? 32 : 128 };
  const cidr = parseCidr(text);
  if (cidr !== undefined) return cidr;
  const [base = '', prefix = ''] = text.split('/');
  const inside = parseAddress(base);
  const bits = inside?.family === 6 ? 128 : 32;
  if (inside === undefined || !/^\d{1,3}$/.test(prefix) || Number(prefix) > bits) return 'names no address or network';
  const rest = BigInt(bits - Number(prefix));
  const network = { family: inside.family, base: (inside.value >> rest) << rest, prefix: Number(prefix) };
  return `has bits after its prefix; write ${formatCidr(network)}`;
}

/** The rules of a setting, and the faults in it. */
export function parseEgressRules(texts: readonly string[]): {
  readonly rules: readonly EgressRule[];
  readonly faults: readonly string[];
} {
  const parsed = texts.map(parseEgressRule);
  return {
    rules: parsed.flatMap((each) => (each.ok ? [each.rule] : [])),
    faults: parsed.flatMap((each) => (each.ok ? [] : [each.fault])),
  };
}
