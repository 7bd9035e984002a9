/** Checks a file against its schema, and names the key that a misspelt one means. Pure. */
import type { TLocalizedValidationError } from 'typebox/error';
import { Compile } from 'typebox/compile';
import { Settings } from 'typebox/system';
import { meant } from '../../../lib/validation/misspelt.ts';
import { namesIn, partsOf, wordsOf } from '../../../lib/validation/words.ts';
import { projectForm } from '../../../schemas/api/fields/container.ts';
import { limits } from '../../../schemas/limits.ts';
import { written } from './fields.ts';
import { ApplyFile } from './schema.ts';
import type { Path } from './tree.ts';

// The default is eight, and all are reported.
Settings.Set({ maxErrors: limits.decodeErrors });

export interface SchemaFault {
  readonly path: Path;
  readonly message: string;
}

export type Checked =
  { readonly ok: true; readonly file: ApplyFile } | { readonly ok: false; readonly faults: readonly SchemaFault[] };

const compiled = Compile(ApplyFile);

export function checked(value: unknown): Checked {
  if (compiled.Check(value)) return { ok: true, file: value };
  const byPlace = new Map<string, SchemaFault[]>();
  for (const error of compiled.Errors(value)) {
    for (const fault of faultsOf(error)) {
      const key = JSON.stringify(fault.path);
      byPlace.set(key, [...(byPlace.get(key) ?? []), fault]);
    }
  }
  // A value that may have one of several forms has an error for each form.
  return { ok: false, faults: [...byPlace.values()].flatMap((found) => found.slice(-1)) };
}

/** Descriptions in place of patterns. */
const forms: Readonly<Record<string, string>> = {
  ...Object.fromEntries(Object.entries(written).map(([name, { form }]) => [name, form])),
  name: projectForm,
  env: 'must be the name of a variable, like DB_PASSWORD',
};
const portForm = "must be a port like 8080 or 53/udp; the host's port can't be chosen";

function faultsOf(error: TLocalizedValidationError): SchemaFault[] {
  const path = partsOf(error.instancePath);
  const message = messageOf(error, path);
  if (message === undefined) return [];
  const names = namesIn(error);
  if (names === undefined) return [{ path, message }];
  const known = error.keyword === 'additionalProperties' ? keysOf(ApplyFile as Node, path) : [];
  return names.map((name) => {
    // Also by the name that Compose has for it.
    const right = meant(name, known) ?? known.find((one) => name.startsWith(one));
    return { path: [...path, name], message: right === undefined ? message : `${message}: did you mean "${right}"?` };
  });
}

function messageOf(error: TLocalizedValidationError, path: Path): string | undefined {
  if (path.at(-2) === 'ports') return error.keyword === 'anyOf' ? portForm : undefined;
  if (error.keyword === 'pattern') return forms[path.at(-1) ?? ''] ?? wordsOf(error);
  return error.keyword === 'type' && Array.isArray(error.params.type) ? 'must be a text' : wordsOf(error);
}

interface Node {
  readonly properties?: Readonly<Record<string, Node>>;
  readonly patternProperties?: Readonly<Record<string, Node>>;
  readonly items?: Node;
  readonly anyOf?: readonly Node[];
}

/** The keys that an object at this path may have. */
function keysOf(schema: Node, path: Path): string[] {
  let node: Node | undefined = schema;
  for (const part of path) {
    node = node?.properties?.[part] ?? Object.values(node?.patternProperties ?? {})[0] ?? node?.items;
    node = node?.anyOf?.[0] ?? node;
  }
  return Object.keys(node?.properties ?? {});
}
