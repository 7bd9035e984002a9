/**
 * The fields that a container is declared with, each declared once. What creates, changes, stores,
 * sends, shows and compares containers derives from this table, and so does `longshore apply`.
 * `Container` shows those that `isShown`, beside five that the platform writes. Pure.
 */
import Type, { type TOptional, type TSchema, type TUnsafe } from 'typebox';
import { envKeyPattern, HostKey, hostKeyPattern } from '../../ids.ts';
import { limits } from '../../limits.ts';
import { cpuLimitPattern, cpuMillis, memBytes, memLimitPattern } from '../../quantity.ts';
import { filesKind } from './files-part.ts';
import { choice, labels as dnsLabels, map, orNull, ports, text, type Kind, type Port as PortText } from './kinds.ts';
import { networkKind, usualNetwork } from './network-part.ts';
import { processKind } from './process-part.ts';

export const pullPolicies = ['if_not_present', 'always', 'never'] as const;
export type PullPolicy = (typeof pullPolicies)[number];
export const PullPolicy = Type.Enum([...pullPolicies]);

/** A container's port: `80` (tcp), `"80/tcp"` or `"53/udp"`. */
export const Port = Type.Union([
  Type.Integer({ minimum: 1, maximum: 65535 }),
  Type.String({ pattern: '^[1-9]\\d{0,4}(/(tcp|udp))?$' }),
]);
export type Port = PortText;

export const namePattern = '^[A-Za-z0-9][A-Za-z0-9_.-]{0,62}$';
/**
 * The host of a reference (distribution/reference): host[:port], where the host is localhost, a
 * name with a dot, or an IPv6 address in brackets.
 */
export const registryPattern =
  '^(?:[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?(?:\\.[A-Za-z0-9](?:[A-Za-z0-9-]*[A-Za-z0-9])?)*|\\[[0-9A-Fa-f:]+\\])(?::[0-9]{1,5})?$';
/** OCI distribution-spec, `<name>`. */
export const repositoryPattern = '^[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*(?:/[a-z0-9]+(?:(?:\\.|_|__|-+)[a-z0-9]+)*)*$';
/** OCI distribution-spec, `<reference>` as a tag. */
export const tagPattern = '^[A-Za-z0-9_][A-Za-z0-9._-]{0,127}$';
/** OCI image-spec, digest; sha256 and sha512 are the registered algorithms. */
export const digestPattern = '^(?:sha256:[0-9a-f]{64}|sha512:[0-9a-f]{128})$';

/** Name of a file of `apply`: a DNS label (RFC 1123). */
export const projectPattern = '^[a-z0-9](?:[a-z0-9-]{0,61}[a-z0-9])?$';
export const projectForm =
  'must be a DNS label: 1 to 63 lower-case letters, digits and "-", with a letter or digit first and last';
export const labelKeyPattern = '^[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?$';
/** `key`, or `key=value`. */
export const labelFilterPattern = '^[A-Za-z0-9](?:[A-Za-z0-9._/-]{0,61}[A-Za-z0-9])?(?:=[^\\0]*)?$';

/** Meanings of absent fields of a declaration. */
export const containerDefaults = { registry: 'docker.io', tag: 'latest', cpu_limit: '0.5', mem_limit: '256m' } as const;

interface Image {
  readonly tag: string | null;
  readonly digest: string | null;
}

/** A digest says what runs; without one, an absent tag is the usual one. */
export const usualTag = ({ tag, digest }: Image): string | null =>
  tag ?? (digest === null ? containerDefaults.tag : null);

/** Of an image whose tag moves, each start pulls the newest. */
export const usualPullPolicy = ({ tag, digest }: Image): PullPolicy =>
  digest === null && (tag ?? containerDefaults.tag) === containerDefaults.tag ? 'always' : 'if_not_present';

/** Purpose of a field, beside the kind of its values. */
interface Use {
  /** A create may give it. */
  readonly isSettable: boolean;
  /** `Container` shows it. */
  readonly isShown: boolean;
  /** `PATCH /:id` may change it. */
  readonly isChangeable: boolean;
  /** A change makes the engine's container again, as an update; or it changes the record alone. */
  readonly affects: 'engine' | 'record';
}

/**
 * Metadata: it changes nothing that runs, and has a route of its own (`PUT /:id/labels`). Stored
 * and sent only where it is not the default.
 */
const beside = { isSettable: true, isShown: false, isChangeable: false, affects: 'record' } as const satisfies Use;

/**
 * A part of the document of a container (`PUT /api/v2/containers/:id/spec`) that the owner's routes
 * do not have. Stored and sent only where it is not the default, likewise.
 */
const documented = { isSettable: false, isShown: false, isChangeable: false, affects: 'engine' } as const satisfies Use;

/** Of the document alone, too; it changes the record alone, and makes an event. */
const noted = { isSettable: false, isShown: false, isChangeable: false, affects: 'record' } as const satisfies Use;

const declared = { isSettable: true, isShown: true, isChangeable: true, affects: 'engine' } as const satisfies Use;
const given = { ...declared, isChangeable: false, affects: 'record' } as const satisfies Use;
const chosen = { ...given, isSettable: false } as const satisfies Use;

const field = <T, P, U extends Use, D>(kind: Kind<T, P>, use: U, fallback: D) => ({ ...kind, ...use, fallback });

/** The fallback of a field that must be given. */
const required = undefined;

const hostForm = 'is not a host in an allocated region';
const blank = "can't be blank";
const memForm = 'must be a whole number of bytes, or one with k, m or g, like "256m"';
const registryForm = 'must be a host with an optional port, like "ghcr.io" or "localhost:5000"';

const { imageNameChars } = limits;

/** In the order of `Container` and of the canonical form. */
export const containerFields = {
  name: field(
    text({
      given: Type.String({ pattern: namePattern, description: 'Unique in the tenant.' }),
      pattern: namePattern,
      form: 'must begin with a letter or digit and have only letters, digits, "_", "." and "-"',
      maxChars: limits.containerNameChars,
      first: (name) => (name.trim() === '' ? blank : undefined),
    }),
    given,
    required,
  ),
  /** A key that no host can have gets the same message as a key that no host has. */
  host_key: field(
    orNull(
      text<HostKey>({
        given: Type.String({ description: 'A host in an allocated region. Absent: the platform chooses one.' }),
        shown: HostKey,
        pattern: hostKeyPattern,
        form: hostForm,
      }),
    ),
    given,
    null,
  ),
  registry: field(
    text({
      given: Type.String({ pattern: registryPattern, maxLength: imageNameChars, default: containerDefaults.registry }),
      pattern: registryPattern,
      form: registryForm,
      maxChars: imageNameChars,
      last: (name) => {
        const port = Number(/:(\d{1,5})$/.exec(name)?.[1] ?? 1);
        return port < 1 || port > 65_535 ? registryForm : undefined;
      },
    }),
    declared,
    containerDefaults.registry,
  ),
  repository: field(
    orNull(
      text({
        given: Type.String({ pattern: repositoryPattern, maxLength: imageNameChars }),
        pattern: repositoryPattern,
        form: 'must be lower-case parts joined by "/", like "library/nginx"',
        maxChars: imageNameChars,
      }),
    ),
    declared,
    null,
  ),
  /** `usualTag` gives the meaning of an absent one. */
  tag: field(
    orNull(
      text({
        given: Type.String({ pattern: tagPattern, default: containerDefaults.tag }),
        pattern: tagPattern,
        form: 'must be a tag, like "latest" or "v1.2"',
        maxChars: 128,
      }),
    ),
    declared,
    null,
  ),
  digest: field(
    orNull(
      text({
        given: Type.String({ pattern: digestPattern }),
        pattern: digestPattern,
        form: 'must be "sha256:" and 64 lower-case hex digits, or "sha512:" and 128',
        maxChars: 135,
      }),
    ),
    declared,
    null,
  ),
  /** `usualPullPolicy`, until an operator chooses another. */
  pull_policy: field(choice<PullPolicy>(PullPolicy), chosen, 'always'),
  ports: field(ports(Port, limits.ports), declared, []),
  env: field(
    map({
      key: envKeyPattern,
      form: 'keys must begin with a letter or "_" and have at most 128 letters, digits, "_", "." and "-"',
      maxKeys: limits.envKeys,
      maxValueBytes: limits.envValueBytes,
      maxTotalBytes: limits.envTotalBytes,
    }),
    declared,
    {},
  ),
  cpu_limit: field(
    text({
      given: Type.String({ pattern: cpuLimitPattern, default: containerDefaults.cpu_limit }),
      pattern: cpuLimitPattern,
      form: 'must be a number of CPUs with one to three decimals, like "0.5"',
      last: (amount) => (cpuMillis(amount) === undefined ? 'must be greater than 0' : undefined),
    }),
    declared,
    containerDefaults.cpu_limit,
  ),
  mem_limit: field(
    text({
      given: Type.String({ pattern: memLimitPattern, default: containerDefaults.mem_limit }),
      pattern: memLimitPattern,
      form: memForm,
      first: (amount) => (amount.length > 32 ? memForm : undefined),
      last: (amount) => (memBytes(amount) === undefined ? 'must be between 6m and 16384g' : undefined),
    }),
    declared,
    containerDefaults.mem_limit,
  ),
  labels: field(
    map({
      key: labelKeyPattern,
      form: 'keys must have at most 63 letters, digits, ".", "_", "/" and "-", and begin and end with a letter or digit',
      reserved: 'longshore.',
      maxKeys: limits.labels,
      maxValueBytes: limits.labelValueBytes,
      description: 'Yours to tell containers apart by; they change nothing that runs.',
    }),
    beside,
    {},
  ),
  project: field(
    orNull(
      text({
        given: Type.String({ pattern: projectPattern, description: 'The file of `longshore apply` that it is of.' }),
        pattern: projectPattern,
        form: projectForm,
      }),
    ),
    beside,
    null,
  ),
  aliases: field(
    dnsLabels({
      pattern: projectPattern,
      form: projectForm,
      maxItems: limits.aliases,
      description: 'Further names of it in its project.',
    }),
    noted,
    [],
  ),
  process: field(processKind, documented, {}),
  files: field(filesKind, documented, {}),
  network: field(networkKind, documented, usualNetwork),
} as const;

type Fields = typeof containerFields;
export type FieldName = keyof Fields;
type NameWith<U> = { [F in FieldName]: Fields[F] extends U ? F : never }[FieldName];
export type SettableName = NameWith<{ readonly isSettable: true }>;
export type ShownName = NameWith<{ readonly isShown: true }>;
export type ChangeableName = NameWith<{ readonly isChangeable: true }>;
export type MetadataName = NameWith<typeof beside>;
/** Parts of the document that nothing on a host depends on. */
export type NotedName = NameWith<typeof noted>;
/** Parts of the document that take effect on the engine's container. */
export type PartName = NameWith<typeof documented>;

type ValueOf<F extends FieldName> = Fields[F] extends { readonly shown: TUnsafe<infer T> } ? T : never;
type PatchOf<F extends FieldName> = Fields[F] extends { readonly patch: TUnsafe<infer P> } ? P : never;

/** A valid create body with defaults filled in, as the gateway sends it to the tenant's actor. */
export type ContainerSpec = {
  readonly [F in Exclude<FieldName, MetadataName | NotedName | PartName>]: ValueOf<F>;
} & Partial<Metadata & Noted & Parts> & {
    /**
     * The generation that looked again at what its tag names (`?pull=always`); absent if none has.
     * It makes another version, though all that is declared stays as it is.
     */
    readonly repull?: number;
    /** The network of its tenant was full (actors/domain/container/create.ts): it is no member. */
    readonly leftOut?: true;
  };
export type Metadata = { readonly [F in MetadataName]: ValueOf<F> };
export type Noted = { readonly [F in NotedName]: ValueOf<F> };
export type Parts = { readonly [F in PartName]: ValueOf<F> };
export type ContainerPatch = { readonly [F in ChangeableName]?: PatchOf<F> | null };

/** A field as code sees it that treats all alike. */
type AnyField = Kind<unknown> & Use & { readonly fallback: unknown };
export const fieldOf = (name: FieldName): AnyField => containerFields[name] as unknown as AnyField;

export const fieldNames = Object.keys(containerFields) as readonly FieldName[];
export const settable = fieldNames.filter((name): name is SettableName => fieldOf(name).isSettable);
export const shown = fieldNames.filter((name): name is ShownName => fieldOf(name).isShown);
const isBeside = ({ isSettable, isShown, affects }: Use): boolean => isSettable && !isShown && affects === 'record';
const isNoted = ({ isSettable, isShown, affects }: Use): boolean => !isSettable && !isShown && affects === 'record';
export const metadataNames = fieldNames.filter((name): name is MetadataName => isBeside(fieldOf(name)));
export const partNames = fieldNames.filter(
  (name): name is PartName => !fieldOf(name).isShown && fieldOf(name).affects === 'engine',
);
export const notedNames = fieldNames.filter((name): name is NotedName => isNoted(fieldOf(name)));
export const changeable = fieldNames.filter((name): name is ChangeableName => fieldOf(name).isChangeable);
/** Fields that are stored only where they are not the default. */
export const kept = [...metadataNames, ...notedNames, ...partNames] as const;
/** Another value of one of these makes another version of the container. */
export const versioned = [...changeable, ...partNames] as const;
export type VersionedName = ChangeableName | PartName;

/** A field of a stored container; one that is not stored has its default. */
export const storedValue = (spec: ContainerSpec, name: FieldName): unknown => spec[name] ?? fieldOf(name).fallback;

/** One schema for each of some fields. */
export const schemasOf = <F extends FieldName, S extends TSchema = TSchema>(
  names: readonly F[],
  schemaOf: (field: AnyField, name: F) => S,
): { readonly [N in F]: S } =>
  Object.fromEntries(names.map((name) => [name, schemaOf(fieldOf(name), name)])) as { [N in F]: S };

/** As answers and messages between our programs have the fields. */
export const shownOf = <F extends FieldName>(names: readonly F[]) =>
  schemasOf(names, (field) => field.shown) as { readonly [N in F]: Fields[N]['shown'] };

/** The same, where each may be absent. */
export const optionalOf = <F extends FieldName>(names: readonly F[]) =>
  schemasOf(names, (field) => Type.Optional(field.shown)) as { readonly [N in F]: TOptional<Fields[N]['shown']> };

const canonicalOf = (name: FieldName, value: unknown): unknown => fieldOf(name).canonical(value);

/** Equal for two values of a field that mean the same. */
export const canonicalText = (name: FieldName, value: unknown): string => JSON.stringify(canonicalOf(name, value));

/** Equal for two specs that declare the same container. */
export const canonicalSpec = (spec: ContainerSpec): string =>
  JSON.stringify([
    ...shown.map((name) => canonicalOf(name, spec[name])),
    ...kept.flatMap((name) => (spec[name] === undefined ? [] : [[name, canonicalOf(name, spec[name])]])),
  ]);

const isDefault = (name: FieldName, value: unknown): boolean =>
  canonicalText(name, value) === canonicalText(name, fieldOf(name).fallback);

/** Every field, with its default where it is absent. */
export const metadataOf = (stored: Partial<Metadata>): Metadata =>
  Object.fromEntries(
    metadataNames.map((name) => [name, stored[name] ?? fieldOf(name).fallback]),
  ) as unknown as Metadata;

/** Of some fields, those that are not the default. */
const toStore = <F extends FieldName, T>(names: readonly F[], given: { readonly [N in F]?: unknown }): T =>
  Object.fromEntries(
    names.flatMap((name) => (given[name] === undefined || isDefault(name, given[name]) ? [] : [[name, given[name]]])),
  ) as T;

export const partsToStore = (given: Partial<Noted & Parts>): Partial<Noted & Parts> =>
  toStore([...notedNames, ...partNames], given);
export const metadataToStore = (given: Partial<Metadata>): Partial<Metadata> => toStore(metadataNames, given);

/**
 * True if a container has one of the labels.
 * @param wanted `key=value`, or `key` for any value; if absent, every container counts
 */
export function hasLabel({ labels = {} }: Partial<Metadata>, wanted?: readonly string[]): boolean {
  const has = (text: string): boolean => {
    const [key = ''] = text.split('=', 1);
    return Object.hasOwn(labels, key) && (key === text || `${key}=${labels[key]}` === text);
  };
  return wanted === undefined || wanted.some(has);
}

/**
 * A container as it is stored, with some of the fields that it does not show.
 * @param given the fields that change
 */
export function withKept(spec: ContainerSpec, given: Partial<Metadata & Noted & Parts>): ContainerSpec {
  const declared = Object.fromEntries(shown.map((name) => [name, spec[name]])) as Pick<ContainerSpec, ShownName>;
  return {
    ...declared,
    ...(spec.repull === undefined ? {} : { repull: spec.repull }),
    ...(spec.leftOut === undefined ? {} : { leftOut: spec.leftOut }),
    ...toStore<(typeof kept)[number], Partial<Metadata & Noted & Parts>>(kept, { ...spec, ...given }),
  };
}
