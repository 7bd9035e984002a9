/**
 * Turns the document of a container into a Declaration, or into all of its faults at once, by the
 * rules of its parts: the table of fields, the policy, the uses of secrets. Pure.
 */
import { isValues, type Values } from '../../lib/values.ts';
import {
  fieldOf,
  metadataNames,
  metadataToStore,
  notedNames,
  partNames,
  partsToStore,
  usualPullPolicy,
  usualTag,
  type ContainerSpec,
  type FieldName,
  type Metadata,
  type Noted,
  type Parts,
} from '../../schemas/api/fields/container.ts';
import { crosses } from '../../schemas/api/fields/file-path.ts';
import { imageNames, plainNames, type Declaration } from '../../schemas/api/spec.ts';
import type { FieldErrors } from '../../schemas/errors.ts';
import { isHostKey } from '../../schemas/ids.ts';
import { validatePolicy } from './policy.ts';
import { validateContainerSecrets } from './secret.ts';
import type { Validated } from './faults.ts';

const top = [
  'name',
  'image',
  'host_key',
  ...plainNames,
  ...partNames,
  'policy',
  'secrets',
  ...metadataNames,
  ...notedNames,
  'desired',
];
const known = new Set<string>(top);
/** Parts of the document that later releases have. */
const later = new Set(['volumes']);

/** Collects faults by their path in the document. */
class Faults {
  readonly found = Object.create(null) as FieldErrors;

  add(path: readonly string[], fault: string): undefined {
    const texts = (this.found[path.join('.')] ??= []);
    if (!texts.includes(fault)) texts.push(fault);
    return undefined;
  }

  /** Those of a part, which name places in it; `_` is the part itself. */
  addAll(part: string, faults: FieldErrors): void {
    for (const [place, texts] of Object.entries(faults))
      for (const text of texts) this.add(place === '_' ? [part] : [part, place], text);
  }
}

/** A field, at its place in the document: null counts as absent. */
function take(from: Values, name: FieldName, path: readonly string[], faults: Faults): unknown {
  const { parse, fallback } = fieldOf(name);
  const value = Object.hasOwn(from, name) ? (from[name] ?? undefined) : undefined;
  if (value !== undefined) return parse(value, (fault, ...below) => faults.add([...path, ...below], fault));
  return fallback === undefined ? faults.add(path, "can't be blank") : fallback;
}

function imageIn(body: Values, faults: Faults): Values {
  const image = body['image'] ?? {};
  if (!isValues(image)) {
    faults.add(['image'], 'must be an object');
    return {};
  }
  const names: readonly string[] = imageNames;
  for (const key of Object.keys(image))
    if (!names.includes(key)) faults.add(['image', key], `is no part of an image: ${names.join(', ')} are`);
  return image;
}

/** A file that has the place of a secret or of a file system in memory. */
function crossed({ files = {}, process = {} }: Partial<Parts>, ofSecrets: readonly string[], faults: Faults): void {
  const inMemory = Object.keys(process.tmpfs ?? {});
  for (const path of Object.keys(files)) {
    if (crosses(path, ofSecrets)) faults.add(['files', path], 'is also a file of `secrets`, or above or below one');
    // A file in such a file system is put there.
    if (inMemory.some((other) => other === path || other.startsWith(`${path}/`)))
      faults.add(['files', path], 'is also in `process.tmpfs`, or above a path of it');
  }
}

export function validateSpec(body: unknown): Validated<Declaration> {
  if (!isValues(body)) return { ok: false, faults: { _: ['must be an object'] } };
  const faults = new Faults();
  for (const key of Object.keys(body)) {
    if (later.has(key) && body[key] !== null) faults.add([key], 'is not supported yet');
    else if (!known.has(key) && !later.has(key)) faults.add([key], `is no part of the document: ${top.join(', ')} are`);
  }
  const image = imageIn(body, faults);
  const ofImage = imageNames.map((name) => [name, take(image, name, ['image', name], faults)]);
  const others = ['name', ...plainNames] as const;
  const ofBody = others.map((name) => [name, take(body, name, [name], faults)]);
  const besides = Object.fromEntries(
    [...metadataNames, ...notedNames, ...partNames].map((name) => [name, take(body, name, [name], faults)]),
  ) as Partial<Metadata & Noted & Parts>;
  const policy = validatePolicy(body['policy'] ?? {});
  if (!policy.ok) faults.addAll('policy', policy.faults);
  const secrets = validateContainerSecrets(body['secrets'] ?? {});
  if (!secrets.ok) faults.addAll('secrets', secrets.faults);
  if (secrets.ok) crossed(besides, Object.keys(secrets.value.files), faults);
  const desired = body['desired'] ?? undefined;
  if (desired !== undefined && desired !== 'running' && desired !== 'stopped')
    faults.add(['desired'], 'must be "running" or "stopped"');
  const host = body['host_key'] ?? undefined;
  if (host !== undefined && (typeof host !== 'string' || !isHostKey(host)))
    faults.add(['host_key'], 'is not a host in an allocated region');
  if (Object.keys(faults.found).length > 0 || !policy.ok || !secrets.ok) return { ok: false, faults: faults.found };

  const given = Object.fromEntries([...ofImage, ...ofBody]) as unknown as ContainerSpec;
  const tagged = { tag: usualTag(given), digest: given.digest };
  return {
    ok: true,
    value: {
      spec: {
        ...given,
        ...tagged,
        host_key: (host ?? null) as ContainerSpec['host_key'],
        pull_policy: usualPullPolicy(tagged),
        ...metadataToStore(besides),
        ...partsToStore(besides),
      },
      policy: policy.value,
      secrets: secrets.value,
      ...(desired === undefined ? {} : { desired: desired as 'running' | 'stopped' }),
      ...(host === undefined ? {} : { host_key: host as NonNullable<Declaration['host_key']> }),
    },
  };
}

/** A merge patch; what it makes of the document is checked as a whole. */
export const validateSpecPatch = (body: unknown): Validated<Values> =>
  isValues(body) ? { ok: true, value: body } : { ok: false, faults: { _: ['must be an object'] } };

/** The target with the patch applied (RFC 7396). */
export function mergePatch(target: unknown, patch: unknown): unknown {
  if (!isValues(patch)) return patch;
  const merged = new Map(isValues(target) ? Object.entries(target) : []);
  for (const [key, value] of Object.entries(patch)) {
    if (value === null) merged.delete(key);
    else merged.set(key, mergePatch(merged.get(key), value));
  }
  return Object.fromEntries(merged);
}
