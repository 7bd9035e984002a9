/**
 * Secrets of a tenant, where they go in a container, and its logins at registries (ADR 37). Values
 * and passwords are write-only: no answer of the API has one.
 */
import Type, { type Static } from 'typebox';
import { ContainerId, type TenantId } from '../ids.ts';
import { limits } from '../limits.ts';
import { nullable } from './nullable.ts';
import type { Sealed } from '../records/sealed.ts';

export const secretNamePattern = '^[A-Za-z0-9_-]{1,64}$';
export const SecretName = Type.String({ pattern: secretNamePattern });

/** Rises with every change of the value. */
export const SecretVersion = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });

/** A value that a container is made with. */
export const SecretUse = Type.Object({ name: SecretName, version: SecretVersion });
export type SecretUse = Static<typeof SecretUse>;

const Mode = Type.Integer({ minimum: 0, maximum: 0o777 });
const FileId = Type.Integer({ minimum: 0, maximum: limits.secretFileIdMax });

/** A use as a file, which lies on tmpfs and is read-only. */
export const SecretFileUse = Type.Object({ ...SecretUse.properties, mode: Mode, uid: FileId, gid: FileId });
export type SecretFileUse = Static<typeof SecretFileUse>;

/** By the name of the environment variable, and by the absolute path of the file. */
export const SecretUses = Type.Object({
  env: Type.Record(Type.String(), SecretUse),
  files: Type.Record(Type.String(), SecretFileUse),
});
export type SecretUses = Static<typeof SecretUses>;

export const noSecrets: SecretUses = Object.freeze({ env: {}, files: {} });

/** Without versions: a container always comes to the current ones. */
export const usesShown = ({ env, files }: SecretUses): ContainerSecrets => ({
  env: Object.fromEntries(Object.entries(env).map(([key, { name }]) => [key, name])),
  files: Object.fromEntries(
    Object.entries(files).map(([path, { name, mode, uid, gid }]) => [path, { secret: name, mode, uid, gid }]),
  ),
});

/** Every use, variables first. */
export const usesIn = ({ env, files }: SecretUses): readonly SecretUse[] => [
  ...Object.values(env),
  ...Object.values(files),
];

/** The names of the secrets, each once. */
export const namesIn = (uses: SecretUses): ReadonlySet<string> => new Set(usesIn(uses).map(({ name }) => name));

const sorted = <T>(uses: Readonly<Record<string, T>>): [string, T][] =>
  Object.entries(uses).sort(([one], [other]) => (one < other ? -1 : 1));

/** The same for the same uses, whatever the order of their keys. */
export const orderedUses = ({ env, files }: SecretUses) => ({
  env: sorted(env).map(([key, { name, version }]) => [key, name, version]),
  files: sorted(files).map(([path, { name, version, mode, uid, gid }]) => [path, name, version, mode, uid, gid]),
});

export const textOfUses = (uses: SecretUses): string => JSON.stringify(orderedUses(uses));

/** `PUT /secrets/:name`; gateway/validation/secret.ts checks the size and the encoding. */
export const SecretBody = Type.Object(
  {
    value: Type.String({ minLength: 1, description: 'Text, or base64 with `encoding`; up to 64 KiB.' }),
    encoding: Type.Optional(Type.Enum(['base64'], { description: 'If absent, the value is text.' })),
  },
  { additionalProperties: false },
);

/** A secret as its tenant sees it: without its value. */
export const SecretView = Type.Object(
  {
    name: SecretName,
    version: SecretVersion,
    updated_at: nullable(
      Type.String({ format: 'date-time', description: 'Null if the stored value is damaged; put it again.' }),
    ),
    used_by: Type.Array(ContainerId, { description: `Containers that use it, up to ${limits.secretUsersShown}.` }),
    staged: Type.Optional(
      Type.Literal(true, { description: 'Containers come to this value with their next start or update.' }),
    ),
    behind: Type.Optional(
      Type.Array(ContainerId, {
        description: `Those with an earlier value that come to this one with their next start or update alone, up to ${limits.secretUsersShown}: all with \`staged\`, else those whose policy \`never\` lets no run be broken off.`,
      }),
    ),
  },
  { additionalProperties: false },
);
export type SecretView = Static<typeof SecretView>;

const fileDefaults = { mode: 0o400, uid: 0, gid: 0 } as const;

const pathText = 'By absolute path in the container, not below /proc, /sys or /dev.';
const FileBody = Type.Object(
  {
    secret: Type.String({ pattern: secretNamePattern }),
    mode: Type.Optional(
      Type.Integer({ ...Mode, default: fileDefaults.mode, description: 'File mode, decimal (256 = 0400).' }),
    ),
    uid: Type.Optional(Type.Integer({ ...FileId, default: fileDefaults.uid })),
    gid: Type.Optional(Type.Integer({ ...FileId, default: fileDefaults.gid })),
  },
  { additionalProperties: false },
);

/** `PUT /:id/secrets`: all uses of the container; uses that are absent end. */
export const ContainerSecretsBody = Type.Object(
  {
    env: Type.Optional(
      Type.Record(Type.String(), Type.String({ pattern: secretNamePattern }), {
        maxProperties: limits.secretUses,
        description: 'Secret for each environment variable.',
      }),
    ),
    files: Type.Optional(
      Type.Record(Type.String(), FileBody, { maxProperties: limits.secretUses, description: pathText }),
    ),
  },
  { additionalProperties: false },
);
export type ContainerSecretsBody = Static<typeof ContainerSecretsBody>;

const FileView = Type.Object({ secret: SecretName, mode: Mode, uid: FileId, gid: FileId });

/** `GET /:id/secrets` */
export const ContainerSecrets = Type.Object({
  env: Type.Record(Type.String(), SecretName),
  files: Type.Record(Type.String(), FileView),
});
export type ContainerSecrets = Static<typeof ContainerSecrets>;

export const withFileDefaults = (file: Static<typeof FileBody>): Static<typeof FileView> => ({
  ...fileDefaults,
  ...file,
});

/**
 * One value of a secret. The one with the highest version is current; earlier ones stay while
 * containers are made from them, or may go back to them.
 */
export interface SecretRecord {
  readonly kind: 'secret';
  readonly tenant: TenantId;
  readonly name: string;
  readonly version: number;
  readonly sealed: Sealed;
  /** Its value is no text, or has a NUL: it can't be an environment variable. */
  readonly binary?: true;
  /** Containers come to it with their next start or update, and not by themselves. */
  readonly staged?: true;
  readonly updatedAtMs: number;
}

/**
 * The highest version of the secrets and logins that the tenant has deleted. Versions of one name
 * never come again, because hosts keep values under name and version.
 */
export interface SecretFloorRecord {
  readonly kind: 'secret_floor';
  readonly tenant: TenantId;
  readonly version: number;
  readonly updatedAtMs: number;
}

/** `PUT /registries/:registry` */
export const LoginBody = Type.Object(
  {
    username: Type.String({
      minLength: 1,
      maxLength: limits.registryUsernameChars,
      pattern: '^[^\\u0000-\\u001f\\u007f:]*$',
      description: 'User name, without control characters and colons.',
    }),
    password: Type.String({ minLength: 1, maxLength: limits.registryPasswordBytes, description: 'Or a token.' }),
  },
  { additionalProperties: false },
);
export type LoginBody = Static<typeof LoginBody>;

/** A login as its tenant sees it: without its password. */
export const LoginView = Type.Object(
  {
    host: Type.String({ description: 'Registry in lower case; `docker.io` is Docker Hub.' }),
    username: nullable(Type.String({ description: 'Null if the stored login is damaged; put it again.' })),
    updated_at: nullable(Type.String({ format: 'date-time' })),
  },
  { additionalProperties: false },
);
export type LoginView = Static<typeof LoginView>;

export interface LoginRecord {
  readonly kind: 'login';
  readonly tenant: TenantId;
  /** As `registryName` writes it. */
  readonly registry: string;
  readonly version: number;
  readonly username: string;
  /** The password. */
  readonly sealed: Sealed;
  readonly updatedAtMs: number;
}
