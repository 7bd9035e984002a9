/**
 * Secrets of a tenant, and where they go in a container (ADR 37). Their values are write-only: no
 * answer of the API has one.
 */
import Type, { type Static } from 'typebox';
import { limits } from '../limits.ts';

export const secretNamePattern = '^[A-Za-z0-9_-]{1,64}$';
export const SecretName = Type.String({ pattern: secretNamePattern });

/** Rises with every change of the value. */
export const SecretVersion = Type.Integer({ minimum: 1, maximum: Number.MAX_SAFE_INTEGER });

/** A value that a container is made with. */
export const SecretUse = Type.Object({ name: SecretName, version: SecretVersion });
export type SecretUse = Static<typeof SecretUse>;

/** A use as a file, which lies on tmpfs and is read-only. */
export const SecretFileUse = Type.Object({
  ...SecretUse.properties,
  mode: Type.Integer({ minimum: 0, maximum: 0o777 }),
  uid: Type.Integer({ minimum: 0, maximum: limits.secretFileIdMax }),
  gid: Type.Integer({ minimum: 0, maximum: limits.secretFileIdMax }),
});
export type SecretFileUse = Static<typeof SecretFileUse>;

/** By the name of the environment variable, and by the absolute path of the file. */
export const SecretUses = Type.Object({
  env: Type.Record(Type.String(), SecretUse),
  files: Type.Record(Type.String(), SecretFileUse),
});
export type SecretUses = Static<typeof SecretUses>;
