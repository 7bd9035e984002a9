/** Rotation and revocation of a folder's keys: what changes in its files. */
import { systemClock } from '../../lib/time/clock.ts';
import { wholeSeconds } from '../../schemas/quantity.ts';
import { Refused, WrongUsage } from '../../cli/terminal/errors.ts';
import { readIssued, validKeysOf, writeIssued, type IssuedKey } from './issued.ts';
import { createKeyOf, prepareNatsIdentity, seedFileOf, seedOf, type NatsIdentity } from './nats-identity.ts';
import { writePrivateFile } from '../../lib/process/private-file.ts';

const nowS = (): number => wholeSeconds(systemClock.nowMs());

/** @throws WrongUsage if the folder has no credentials of that name */
export function checkName({ current }: NatsIdentity, name: string): void {
  if (current.has(name)) return;
  throw new WrongUsage(`${name} is no name in this folder; it has ${[...current.keys()].join(', ')}.`);
}

/**
 * Makes a new key for the name. The earlier ones stay valid.
 * @param ttlS the lifetime of its credentials in seconds; if absent, they do not expire
 */
export async function rotateKey(folder: string, name: string, ttlS?: number): Promise<NatsIdentity> {
  const pair = createKeyOf(name);
  const iat = nowS();
  const entry = { name, key: pair.getPublicKey(), iat, ...(ttlS === undefined ? {} : { exp: iat + ttlS }) };
  // Noted first: of no key that was ever given away is the folder without a note.
  writeIssued(folder, [...readIssued(folder), entry]);
  writePrivateFile(seedFileOf(folder, name), seedOf(pair));
  return prepareNatsIdentity(folder);
}

/**
 * The keys that `revoke` means by a name, which are all but the one in the folder's files, or by a
 * key.
 * @throws WrongUsage, and Refused if there are none
 */
export function keysToRevoke(identity: NatsIdentity, nameOrKey: string): IssuedKey[] {
  const { issued, current } = identity;
  const named = issued.filter(({ key }) => key === nameOrKey);
  if (named.length > 0) return named;
  checkName(identity, nameOrKey);
  const ofName = issued.filter(({ name }) => name === nameOrKey);
  const isEarlier = ({ key }: IssuedKey): boolean => key !== current.get(nameOrKey);
  const earlier = ofName.filter(isEarlier);
  if (earlier.length > 0) return earlier;
  const [only] = validKeysOf(issued, nameOrKey);
  throw new Refused(
    `${nameOrKey} has no earlier key. Rotate it first; or give its key ${only?.key ?? ''} in place of the name, and ` +
      'what uses it is refused at once.',
  );
}

/** Marks keys as revoked, and makes the files again. Calling it again changes nothing. */
export async function revokeKeys(folder: string, keys: readonly IssuedKey[]): Promise<NatsIdentity> {
  const named = new Set(keys.map(({ key }) => key));
  const atS = nowS();
  writeIssued(
    folder,
    readIssued(folder).map((each) =>
      named.has(each.key) && each.revoked === undefined ? { ...each, revoked: atS } : each,
    ),
  );
  return prepareNatsIdentity(folder);
}
