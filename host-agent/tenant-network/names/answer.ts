/**
 * Decides the answer to a query (RFC 1034, RFC 1035): names of the tenant network are answered
 * here, the rest by the name servers of the host. Pure: bytes in, bytes out.
 */
import * as dns from 'dns-packet';
import { internalDomain } from '../../../schemas/tenant-network.ts';
import type { NamedMember } from '../../../schemas/wire/net.ts';
import { addressAsked, labelAsked, type Zone, type Zones } from './zones.ts';

export type Reaction =
  | { readonly kind: 'answer'; readonly bytes: Buffer }
  /** The query is for the host's name servers. */
  | { readonly kind: 'forward' }
  /** The message is no query: nothing is sent. */
  | { readonly kind: 'ignore' };

/** RFC 1035, section 4.1.1. */
const codes = { ok: 0, malformed: 1, failed: 2, unknown: 3, unimplemented: 4, refused: 5 } as const;
type Code = (typeof codes)[keyof typeof codes];

const headerBytes = 12;
/** Without EDNS (RFC 1035, section 4.2.1), and the most with it: more would be fragmented. */
const plainBytes = 512;
const ednsBytes = 1232;
const tcpBytes = 65_535;
/**
 * The seconds for which an answer may be cached. A container that moves keeps its address, so this
 * is about names that come and go.
 */
const ttl = 5;
const negativeTtl = 1;

/** An answer with a code and no records. */
function refusal(query: Buffer, code: Code): Buffer {
  const bytes = Buffer.alloc(headerBytes);
  query.copy(bytes, 0, 0, 2);
  // A response, with the opcode and the recursion flag of the query.
  bytes[2] = 0x80 | ((query[2] ?? 0) & 0x79);
  bytes[3] = code;
  return bytes;
}

export const failed = (query: Buffer): Buffer => refusal(query, codes.failed);
export const refused = (query: Buffer): Buffer => refusal(query, codes.refused);

export function reactTo(query: Buffer, source: string, transport: 'udp' | 'tcp', zones: Zones): Reaction {
  if (query.byteLength < headerBytes || (query.readUInt8(2) & 0x80) !== 0) return { kind: 'ignore' };
  const say = (code: Code): Reaction => ({ kind: 'answer', bytes: refusal(query, code) });
  const zone = zones.zoneOf(source);
  if (zone === undefined) return say(codes.refused);
  if ((query.readUInt8(2) & 0x78) !== 0) return say(codes.unimplemented);
  const packet = decoded(query);
  const [question, ...others] = packet?.questions ?? [];
  if (packet === undefined || question === undefined || others.length > 0) return say(codes.malformed);
  const found = lookUp(question, zone, zones);
  if (found === undefined) return { kind: 'forward' };
  // A name that is not ASCII cannot be repeated unchanged.
  if (!/^[\x21-\x7e]*$/.test(question.name)) return say(codes.malformed);
  return { kind: 'answer', bytes: encoded(packet, question, found, transport) };
}

function decoded(query: Buffer): dns.DecodedPacket | undefined {
  try {
    return dns.decode(query);
  } catch {
    return undefined;
  }
}

interface Found {
  readonly code: Code;
  readonly answers: dns.Answer[];
}

/** `undefined` if the question is for other servers. */
function lookUp(question: dns.Question, zone: Zone, zones: Zones): Found | undefined {
  if ((question.class ?? 'IN') !== 'IN') return { code: codes.refused, answers: [] };
  const name = question.name.replace(/\.$/, '').toLowerCase();
  const address = addressAsked(name);
  if (address !== undefined) return zones.isInside(address) ? reversed(question, zone.at(address)) : undefined;
  const label = labelAsked(name);
  if (label === undefined) return undefined;
  if (label === '') return { code: codes.ok, answers: [] };
  const members = zone.find(label);
  if (members.length === 0) return { code: codes.unknown, answers: [] };
  return { code: codes.ok, answers: members.flatMap((member) => addressesOf(question, member)) };
}

function reversed({ name, type }: dns.Question, member: NamedMember | undefined): Found {
  if (member === undefined) return { code: codes.unknown, answers: [] };
  const data = `${member.name}.${internalDomain}`;
  return { code: codes.ok, answers: type === 'PTR' ? [{ type, name, ttl, data }] : [] };
}

function addressesOf({ name, type }: dns.Question, { ipv4, ipv6 }: NamedMember): dns.Answer[] {
  if (type === 'A') return ipv4 === null ? [] : [{ type, name, ttl, data: ipv4 }];
  return type === 'AAAA' ? [{ type, name, ttl, data: ipv6 }] : [];
}

function encoded(
  { id, flag_rd: wantsRecursion, additionals = [] }: dns.DecodedPacket,
  question: dns.Question,
  { code, answers }: Found,
  transport: 'udp' | 'tcp',
): Buffer {
  const edns = additionals.find(({ type }) => type === 'OPT');
  const asked = edns !== undefined && 'udpPayloadSize' in edns ? edns.udpPayloadSize : plainBytes;
  const most = transport === 'tcp' ? tcpBytes : Math.min(Math.max(asked, plainBytes), ednsBytes);
  const flags =
    dns.AUTHORITATIVE_ANSWER | dns.RECURSION_AVAILABLE | (wantsRecursion ? dns.RECURSION_DESIRED : 0) | code;
  const response = (flags: number, answers: dns.Answer[], authorities: dns.Answer[]): Buffer =>
    dns.encode({
      type: 'response',
      id,
      flags,
      questions: [question],
      answers,
      authorities,
      additionals: edns === undefined ? [] : [ownEdns],
    });
  const whole = response(flags, answers, answers.length > 0 || code === codes.refused ? [] : [startOfAuthority]);
  return whole.byteLength <= most ? whole : response(flags | dns.TRUNCATED_RESPONSE, [], []);
}

/** The answer's own EDNS record (RFC 6891). */
const ownEdns: dns.OptAnswer = {
  type: 'OPT',
  name: '.',
  udpPayloadSize: ednsBytes,
  extendedRcode: 0,
  ednsVersion: 0,
  flags: 0,
  flag_do: false,
  options: [],
};

/** Tells how long the absence of a name may be cached (RFC 2308). */
const startOfAuthority: dns.SoaAnswer = {
  type: 'SOA',
  name: internalDomain,
  ttl: negativeTtl,
  data: {
    mname: `ns.${internalDomain}`,
    rname: `hostmaster.${internalDomain}`,
    serial: 1,
    refresh: 3600,
    retry: 600,
    expire: 86_400,
    minimum: negativeTtl,
  },
};
