/**
 * Bodies of secrets and registry logins, and of their uses in a container. No fault shows a value.
 * Pure.
 */
import { faultOfPath } from '../../schemas/api/fields/file-path.ts';
import { envKeyPattern } from '../../schemas/ids.ts';
import {
  type ContainerSecrets,
  ContainerSecretsBody,
  LoginBody,
  SecretBody,
  withFileDefaults,
} from '../../schemas/api/secret.ts';
import type { FieldErrors } from '../../schemas/errors.ts';
import { limits } from '../../schemas/limits.ts';
import type { Validated } from './faults.ts';
import { bodyValidator } from './schema.ts';

const validateSecretSchema = bodyValidator(SecretBody);
const validateLoginSchema = bodyValidator(LoginBody);
const validateUsesSchema = bodyValidator(ContainerSecretsBody);

export interface SecretValue {
  readonly bytes: Buffer;
  /** It can't be an environment variable. */
  readonly isBinary: boolean;
}

const utf8 = new TextDecoder('utf-8', { fatal: true, ignoreBOM: true });

function isBinary(bytes: Buffer): boolean {
  if (bytes.includes(0)) return true;
  try {
    utf8.decode(bytes);
    return false;
  } catch {
    return true;
  }
}

const loneSurrogate = /\p{Surrogate}/u;
const notUnicode = 'must be valid Unicode; send other bytes with the encoding base64';

export function validateSecret(body: unknown): Validated<SecretValue> {
  const valid = validateSecretSchema(body);
  if (!valid.ok) return valid;
  const { value, encoding } = valid.value;
  const fault = (text: string): Validated<SecretValue> => ({ ok: false, faults: { value: [text] } });
  if (encoding === undefined && loneSurrogate.test(value)) return fault(notUnicode);
  const bytes = Buffer.from(value, encoding ?? 'utf8');
  if (encoding === 'base64' && bytes.toString('base64') !== value)
    return fault('must be base64 with padding and without line breaks');
  if (bytes.length > limits.secretBytes) return fault(`must be at most ${limits.secretBytes} bytes`);
  return { ok: true, value: { bytes, isBinary: isBinary(bytes) } };
}

export function validateLogin(body: unknown): Validated<LoginBody> {
  const valid = validateLoginSchema(body);
  if (!valid.ok) return valid;
  const faults: FieldErrors = {};
  for (const field of ['username', 'password'] as const)
    if (loneSurrogate.test(valid.value[field])) faults[field] = ['must be valid Unicode'];
  if (Buffer.byteLength(valid.value.password) > limits.registryPasswordBytes)
    faults['password'] = [`must be at most ${limits.registryPasswordBytes} bytes`];
  return Object.keys(faults).length === 0 ? valid : { ok: false, faults };
}

const envKey = new RegExp(envKeyPattern);

export function validateContainerSecrets(body: unknown): Validated<ContainerSecrets> {
  const valid = validateUsesSchema(body);
  const faults: FieldErrors = { ...(valid.ok ? {} : valid.faults) };
  const { env = {}, files = {} } = mapsIn(body);
  for (const key of keysOf(env)) if (!envKey.test(key)) faults[fieldOf('env', key)] = [`must match ${envKeyPattern}`];
  const paths = keysOf(files);
  for (const path of paths) {
    const fault = faultOfPath(path, paths);
    if (fault !== undefined) faults[fieldOf('files', path)] = [fault];
  }
  if (keysOf(env).length + paths.length > limits.secretUses && faults['_'] === undefined)
    faults['_'] = [`must be at most ${limits.secretUses} uses in all`];
  if (!valid.ok || Object.keys(faults).length > 0) return { ok: false, faults };
  const withDefaults = Object.entries(valid.value.files ?? {}).map(([path, file]) => [path, withFileDefaults(file)]);
  return {
    ok: true,
    value: {
      env: valid.value.env ?? {},
      files: Object.fromEntries(withDefaults) as ContainerSecrets['files'],
    },
  };
}

const mapsIn = (body: unknown): { readonly env?: unknown; readonly files?: unknown } =>
  typeof body === 'object' && body !== null ? body : {};

/** No more than are reported. */
const keysOf = (map: unknown): string[] =>
  typeof map === 'object' && map !== null && !Array.isArray(map)
    ? Object.keys(map).slice(0, limits.secretUses + 1)
    : [];

function fieldOf(map: 'env' | 'files', key: string): string {
  const field = `${map}.${key}`;
  return field.length > limits.faultFieldChars ? `${field.slice(0, limits.faultFieldChars)}…` : field;
}
