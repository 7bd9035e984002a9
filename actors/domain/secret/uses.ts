/** Decides what a tenant asks of the secrets of a container (ADR 37). Pure. */
import type { ContainerRecord } from '../../../schemas/api/container.ts';
import { crosses } from '../../../schemas/api/fields/file-path.ts';
import { noSecrets, usesShown, type ContainerSecrets, type SecretUses } from '../../../schemas/api/secret.ts';
import type { FieldErrors } from '../../../schemas/errors.ts';
import type { Ask } from '../../../schemas/wire/asks.ts';
import { change, find } from '../container/decide.ts';
import { versionOf } from '../container/updates.ts';
import type { PartitionView } from '../state.ts';
import type { TenantView } from '../tenant/state.ts';
import { answer, conflict, data, invalid, repeatable, type Turn, type TurnContext } from '../turn.ts';
import { currentOf } from './state.ts';

type Of<Type extends Ask['type']> = Extract<Ask, { type: Type }>;

export function get(state: PartitionView, ask: Of<'container.secrets'>): Turn {
  const found = find(state, ask);
  return 'refusal' in found ? found.refusal : answer(data('ok', usesShown(found.record.secrets ?? noSecrets)));
}

/** Idempotent. Other uses are an update, as another image is. */
export function put(state: PartitionView, ask: Of<'container.secrets.put'>, context: TurnContext): Turn {
  const found = find(state, ask);
  if ('refusal' in found) return found.refusal;
  const { record } = found;
  if (record.desired === 'removed') return conflict('removing', 'the container is being removed');
  const tenant = state.tenant(ask.tenant);
  const uses = usesFor(tenant, record, ask.secrets);
  if ('faults' in uses) return invalid(uses.faults);
  const taken = Object.keys(ask.secrets.files).filter((path) => crosses(path, Object.keys(record.spec.files ?? {})));
  if (taken.length > 0) return invalid(Object.fromEntries(taken.map((path) => [`files.${path}`, [isDeclared]])));
  const { secrets } = uses;
  const reply = repeatable('ok', usesShown(secrets));
  return change(state, record, { ...versionOf(record), secrets }, 'secrets_changed', context, () => reply);
}

/** The uses that are asked for, with their versions, or their faults. */
export function usesFor(
  tenant: TenantView,
  record: Pick<ContainerRecord, 'configFiles' | 'secrets'>,
  given: ContainerSecrets,
): { readonly secrets: SecretUses } | { readonly faults: FieldErrors } {
  const faults = faultsOf(tenant, record, given);
  return Object.keys(faults).length > 0 ? { faults } : { secrets: atCurrent(tenant, record, given) };
}

function faultsOf(
  { secrets: { values } }: TenantView,
  { configFiles }: Pick<ContainerRecord, 'configFiles'>,
  { env, files }: ContainerSecrets,
): FieldErrors {
  const faults: FieldErrors = {};
  for (const [key, name] of Object.entries(env)) {
    const known = values.get(name);
    if (known === undefined) faults[`env.${key}`] = [unknown(name)];
    else if (known.get(currentOf(known) ?? 0)?.binary === true)
      faults[`env.${key}`] = ['is no text, or has a NUL: use it as a file'];
  }
  for (const [path, { secret }] of Object.entries(files)) {
    if (!values.has(secret)) faults[`files.${path}.secret`] = [unknown(secret)];
    if (configFiles.some((file) => file.path === path)) faults[`files.${path}`] = [isConfigFile];
  }
  return faults;
}

const unknown = (name: string): string => `"${name}" is not a secret that you have`;
const isDeclared = 'is a file of the document of the container, or above or below one: take that out first';
const isConfigFile = 'is a file that the operator puts there';

/** A use that stays keeps its version: roll.ts decides when it gets another value. */
function atCurrent(
  { secrets: { values } }: TenantView,
  record: Pick<ContainerRecord, 'secrets'>,
  given: ContainerSecrets,
): SecretUses {
  const held = record.secrets ?? noSecrets;
  const use = (name: string, before: { readonly name: string; readonly version: number } | undefined) => ({
    name,
    version: before?.name === name ? before.version : (currentOf(values.get(name)) ?? 1),
  });
  return {
    env: Object.fromEntries(Object.entries(given.env).map(([key, name]) => [key, use(name, held.env[key])])),
    files: Object.fromEntries(
      Object.entries(given.files).map(([path, { secret, ...file }]) => [
        path,
        { ...use(secret, held.files[path]), ...file },
      ]),
    ),
  };
}
