/**
 * Turns the body that creates or changes a peer into the values to store, or into all of its
 * faults.
 */
import type { NetworkName } from '../../schemas/ids.ts';
import type { PeerUpdate } from '../../schemas/wire/asks.ts';
import { PeerCreateBody, PeerUpdateBody } from '../../schemas/api/peer.ts';
import type { Validated } from './faults.ts';
import { bodyValidator } from './schema.ts';
import {
  checkDns,
  checkResolvers,
  checkRoutes,
  examine,
  normalAddress,
  normalCidr,
  normalised,
  type Report,
} from './vpn-lists.ts';
import { withoutJoiners } from '../../lib/validation/joiners.ts';
import { parseExpiry, parseTimestamp } from './timestamp.ts';
import { limits } from '../../schemas/limits.ts';

/** A new peer as its tenant describes it. `network` is `null` for the default one. */
export interface PeerSettings {
  readonly name: string;
  readonly network: NetworkName | null;
  readonly expiresAtMs: number | null;
  readonly routes: readonly string[] | null;
  readonly dns: readonly string[] | null;
}

const validateCreateSchema = bodyValidator(PeerCreateBody);
const validateUpdateSchema = bodyValidator(PeerUpdateBody);

/**
 * Categories C (control, format, surrogate, private, unassigned), Zl and Zp: invisible characters,
 * or characters that move visible ones.
 */
const unprintable = /[\p{C}\p{Zl}\p{Zp}]/u;

function checkName(value: unknown, report: Report): void {
  if (typeof value !== 'string') return;
  const name = value.normalize('NFC');
  if (unprintable.test(withoutJoiners(name))) report('name', 'must not contain control or invisible characters');
  else if (name.trim() === '') report('name', "can't be blank");
  else if (name !== name.trim()) report('name', 'must not begin or end with a space');
  // Some characters are longer when they are normalised. JSON Schema counts code points (RFC 8259).
  else if ([...name].length > limits.peerNameChars)
    report('name', `must be at most ${limits.peerNameChars} characters`);
}

function checkExpiry(value: unknown, nowMs: number, report: Report): void {
  if (typeof value !== 'string') return;
  const expiry = parseExpiry(value, nowMs);
  if (!expiry.ok) report('expires_at', expiry.fault);
}

const checker =
  (nowMs: number) =>
  (fields: Readonly<Record<string, unknown>>, report: Report): void => {
    checkName(fields['name'], report);
    checkExpiry(fields['expires_at'], nowMs, report);
    checkRoutes(fields['routes'], report);
    checkDns(fields['dns'], report);
    checkResolvers(fields['dns'], report);
  };

const listOf = (list: readonly string[] | null, normal: (text: string) => string | undefined): string[] | null =>
  list === null ? null : normalised(list, normal);
const timeOf = (text: string | null): number | null => (text === null ? null : (parseTimestamp(text) ?? null));

export function validatePeerCreate(body: unknown, nowMs: number): Validated<PeerSettings> {
  const valid = validateCreateSchema(body);
  const faults = examine(valid, body, checker(nowMs));
  if (!valid.ok || Object.keys(faults).length > 0) return { ok: false, faults };
  const { name, network, expires_at: expiresAt, routes, dns } = valid.value;
  return {
    ok: true,
    value: {
      name: name.normalize('NFC'),
      network: network ?? null,
      expiresAtMs: timeOf(expiresAt ?? null),
      routes: listOf(routes ?? null, normalCidr),
      dns: listOf(dns ?? null, normalAddress),
    },
  };
}

/** A field that the body lacks is absent from the update. */
export function validatePeerUpdate(body: unknown, nowMs: number): Validated<PeerUpdate> {
  const valid = validateUpdateSchema(body);
  const faults = examine(valid, body, checker(nowMs));
  if (!valid.ok || Object.keys(faults).length > 0) return { ok: false, faults };
  const { name, enabled, expires_at: expiresAt, routes, dns } = valid.value;
  return {
    ok: true,
    value: {
      ...(name === undefined ? {} : { name: name.normalize('NFC') }),
      ...(enabled === undefined ? {} : { enabled }),
      ...(expiresAt === undefined ? {} : { expiresAtMs: timeOf(expiresAt) }),
      ...(routes === undefined ? {} : { routes: listOf(routes, normalCidr) }),
      ...(dns === undefined ? {} : { dns: listOf(dns, normalAddress) }),
    },
  };
}
