/** Declarations of a file with every default filled in, to compare with what exists. Pure. */
import { filesShown } from '../../../schemas/api/fields/files-part.ts';
import {
  containerFields,
  fieldOf,
  metadataNames,
  notedNames,
  partNames,
  usualTag,
} from '../../../schemas/api/fields/container.ts';
import {
  defaultPolicy,
  policyShown,
  healthDefaults,
  type PolicyBody,
  type PolicyView,
} from '../../../schemas/api/policy.ts';
import { registryName } from '../../../schemas/api/registry.ts';
import { withFileDefaults } from '../../../schemas/api/secret.ts';
import { plainNames } from '../../../schemas/api/spec.ts';
import type { Document } from '../../tenant/document.ts';
import { imageIn } from '../../tenant/image.ts';
import { containerFaults, forms, patterns, type RemarkOf } from './checks.ts';
import { entryNames, valueOf } from './fields.ts';
import type { ApplyFile, ContainerEntry, PeerEntry, Source } from './schema.ts';
import type { Path, Remark } from './tree.ts';

/** Source of a value. */
export type ValueSource = Source | { readonly value: string };

export interface WantedSecret {
  readonly name: string;
  /** `undefined` after a fault. */
  readonly source: ValueSource | undefined;
  readonly remark: RemarkOf;
}

export interface WantedLogin extends WantedSecret {
  readonly username: string;
}

/** All that a file declares of a container, as the API has it. */
export type Declaration = Omit<Document, 'host_key' | 'desired'>;

export interface WantedContainer {
  readonly name: string;
  /** `undefined` if the container may run on any host. */
  readonly host: string | undefined;
  readonly document: Declaration;
  /** Waited for to its end. */
  readonly isJob: boolean;
  /** Its host looks at the tag with each apply. */
  readonly isPulled: boolean;
  readonly remark: RemarkOf;
}

export interface WantedPeer {
  readonly name: string;
  readonly fields: PeerEntry;
  readonly remark: RemarkOf;
}

export interface Wanted {
  /** Projects whose containers are removed if they are no longer declared. */
  readonly projects: readonly string[];
  readonly registries: readonly WantedLogin[];
  readonly secrets: readonly WantedSecret[];
  readonly containers: readonly WantedContainer[];
  readonly peers: readonly WantedPeer[];
  readonly removed: {
    readonly registries: readonly string[];
    readonly secrets: readonly string[];
    readonly peers: readonly string[];
  };
}

/** Faults, and warnings for the reader. */
export interface Remarks {
  readonly faults: Remark[];
  readonly warnings: Remark[];
}

type RemarkAt = (path: Path, message: string) => Remark;

/** A file's declarations; items that have faults are left out. */
export function wantedOf(file: ApplyFile, remarkAt: RemarkAt, remarks: Remarks): Wanted {
  const { faults } = remarks;
  const named = <T, R>(
    kind: 'registries' | 'secrets' | 'containers' | 'peers',
    entries: Readonly<Record<string, T>> = {},
    read: (name: string, entry: T, remark: RemarkOf) => R | undefined,
  ): R[] =>
    Object.entries(entries).flatMap(([name, entry]) => {
      const remark: RemarkOf = (message, ...below) => remarkAt([kind, name, ...below], message);
      if (!patterns[kind].test(name)) faults.push(remark(`the name ${forms[kind]}`));
      else return read(name, entry, remark) ?? [];
      return [];
    });
  return {
    projects: file.name === undefined ? [] : [file.name],
    registries: named('registries', file.registries, (name, { username, password, password_from }, remark) => ({
      name: registryName(name),
      username,
      source: sourceOf('password', password, password_from, remark, remarks),
      remark,
    })),
    secrets: named('secrets', file.secrets, (name, { value, value_from }, remark) => ({
      name,
      source: sourceOf('value', value, value_from, remark, remarks),
      remark,
    })),
    containers: named('containers', file.containers, (name, given, remark) => {
      const entry = normalised(given);
      const found = containerFaults(entry, remark);
      faults.push(...found);
      return found.length > 0 ? undefined : containerOf(name, file.name ?? null, entry, remark);
    }),
    peers: named('peers', file.peers, (name, fields, remark) => ({ name, fields, remark })),
    removed: {
      registries: (file.removed?.registries ?? []).map(registryName),
      secrets: file.removed?.secrets ?? [],
      peers: file.removed?.peers ?? [],
    },
  };
}

/** The one source of a value; a fault if there are none or two. */
function sourceOf(
  field: 'value' | 'password',
  value: string | undefined,
  from: Source | undefined,
  remark: RemarkOf,
  { faults, warnings }: Remarks,
): ValueSource | undefined {
  if ((value === undefined) === (from === undefined)) faults.push(remark(`give one of ${field} and ${field}_from`));
  if (from !== undefined && (from.env === undefined) === (from.file === undefined))
    faults.push(remark('give one of env and file', `${field}_from`));
  if (value !== undefined)
    warnings.push(remark(`who reads the file knows it: better give ${field}_from with env or file`, field));
  return from ?? (value === undefined ? undefined : { value });
}

/** The entry in the form of the API. */
const normalised = (entry: ContainerEntry): ContainerEntry => {
  const values = entryNames.map((name) => [name, valueOf(name, entry[name])] as const);
  return { ...entry, ...Object.fromEntries(values.filter(([, value]) => value !== undefined)) };
};

/** The declaration with defaults for absent fields. */
function documentOf(name: string, project: string | null, entry: ContainerEntry): Declaration {
  const { registry, repository, tag = null, digest = null } = imageIn(entry.image);
  const { policy = {}, secrets = {} } = entry;
  const given: Readonly<Record<string, unknown>> = { ...entry, project };
  const fields = [...plainNames, ...notedNames, ...partNames, ...metadataNames].map((field) => {
    const { parse, fallback } = fieldOf(field);
    const value = given[field] ?? undefined;
    return [field, (value === undefined ? undefined : parse(value, () => undefined)) ?? fallback] as const;
  });
  const files =
    entry.files === undefined ? {} : filesShown(containerFields.files.parse(entry.files, () => undefined) ?? {});
  return {
    name,
    image: { registry, repository, tag: usualTag({ tag, digest }), digest },
    ...(Object.fromEntries(fields) as Pick<Declaration, (typeof fields)[number][0]>),
    files,
    policy: policyOf(policy),
    secrets: {
      env: secrets.env ?? {},
      files: Object.fromEntries(
        Object.entries(secrets.files ?? {}).map(([path, file]) => [path, withFileDefaults(file)]),
      ),
    },
  };
}

function containerOf(name: string, project: string | null, entry: ContainerEntry, remark: RemarkOf): WantedContainer {
  const document = documentOf(name, project, entry);
  return { name, host: entry.host_key, document, isJob: entry.policy?.restart === 'never', isPulled: false, remark };
}

function policyOf({ health, ...given }: PolicyBody): PolicyView {
  const policy = { ...policyShown(defaultPolicy), ...given };
  if (health == null) return policy;
  const { http, none, ...check } = health;
  if (none === true) return { ...policy, health: { none } };
  const withPath = http === undefined ? {} : { http: { path: '/', ...http } };
  return { ...policy, health: { ...healthDefaults, ...check, ...withPath } };
}

/** The declared fields, without those that are no longer declared. */
export const withoutRemovals = (wanted: Wanted): Wanted => ({
  ...wanted,
  projects: [],
  removed: { registries: [], secrets: [], peers: [] },
});

/** Declarations of several files; a fault for what two of them declare. */
export function joined(files: readonly Wanted[], faults: Remark[]): Wanted {
  const all = <T extends { readonly name: string; readonly remark: RemarkOf }>(
    of: (one: Wanted) => readonly T[],
  ): T[] => {
    const seen = new Set<string>();
    return files.flatMap(of).filter((item) => {
      if (seen.has(item.name)) faults.push(item.remark('is declared twice'));
      return !seen.has(item.name) && seen.add(item.name);
    });
  };
  const wanted = {
    projects: [...new Set(files.flatMap(({ projects }) => projects))],
    registries: all(({ registries }) => registries),
    secrets: all(({ secrets }) => secrets),
    containers: all(({ containers }) => containers),
    peers: all(({ peers }) => peers),
  };
  const gone = (kind: keyof Wanted['removed']): string[] => {
    for (const item of wanted[kind])
      if (files.some(({ removed }) => removed[kind].includes(item.name)))
        faults.push(item.remark(`is declared, and "removed" names it too`));
    return [...new Set(files.flatMap(({ removed }) => removed[kind]))];
  };
  return { ...wanted, removed: { registries: gone('registries'), secrets: gone('secrets'), peers: gone('peers') } };
}
