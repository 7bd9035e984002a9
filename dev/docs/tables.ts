/** Makes the tables of docs/ from the definitions in the code. Pure. */
import type { Settings } from '../../lib/config.ts';
import { reasons } from '../../schemas/api/container.ts';
import { containerStatuses } from '../../schemas/words.ts';
import { conflictReasons, errorStatus, successStatus, type ErrorCode } from '../../schemas/errors.ts';
import { authErrors, commonErrors, type Access, type QueryParameter, type Route } from '../../schemas/routes.ts';
import { scopeText } from '../../schemas/scopes.ts';
import type { ToolEntry } from '../fetch/tool-table.ts';
import { code, table } from './markdown.ts';
import type { MetricDescription } from '../../lib/metric-table.ts';
import { conflictWords, errorWords, reasonWords, settingWords, statusWords, toolWords, toolingWords } from './words.ts';

const errorCodes = Object.keys(errorStatus) as ErrorCode[];

const bodyOf = (error: ErrorCode): string => {
  switch (error) {
    case 'over_quota':
      return '{"error":"over_quota","detail":{"dimension":string,"requested":integer,"max":integer}}';
    case 'invalid':
      return '{"error":"invalid","details":{field:[message,...]}}';
    case 'conflict':
      return '{"error":"conflict","reason":string,"message":string}';
    default:
      return `{"error":"${error}"}`;
  }
};

export const errorsTable = (): string =>
  table(
    ['Status', 'Body', 'When', 'What a client does'],
    errorCodes.map((error) => [
      String(errorStatus[error]),
      code(bodyOf(error)),
      errorWords[error].when,
      errorWords[error].client,
    ]),
  );

export const conflictsTable = (): string =>
  table(
    ['Reason', 'Meaning', 'What to do'],
    conflictReasons.map((reason) => [code(reason), conflictWords[reason].meaning, conflictWords[reason].todo]),
  );

export const statusesTable = (): string =>
  table(
    ['Status', 'Meaning', 'Goes to'],
    containerStatuses.map((status) => [code(status), statusWords[status].meaning, statusWords[status].next]),
  );

export const reasonsTable = (): string =>
  table(
    ['Reason', 'Meaning', 'What to do'],
    reasons.map((reason) => [code(reason), reasonWords[reason].meaning, reasonWords[reason].todo]),
  );

export const metricsTable = (metrics: readonly MetricDescription[]): string =>
  table(
    ['Name', 'Type', 'Labels', 'What it is', 'What to watch'],
    metrics.map(({ name, type, labels, help, watch }) => [code(name), type, labels.map(code).join(', '), help, watch]),
  );

/** A default value in the form of an environment variable. */
export function defaultText(value: unknown): string {
  if (value === undefined) return '';
  if (Array.isArray(value)) return value.join(',');
  if (typeof value === 'object' && value !== null && 'socketPath' in value) return `unix://${String(value.socketPath)}`;
  return String(value);
}

export const settingsTable = (program: string, settings: Settings): string =>
  table(
    ['Variable', 'Form', 'Default', 'Meaning'],
    Object.entries(settings).map(([name, { form, doc, fallback }]) => {
      const given = fallback === undefined ? 'required' : (fallback.text ?? defaultText(fallback.value));
      const words = settingWords[`${program} ${name}`];
      return [
        code(name),
        form,
        fallback === undefined || given === '' ? given : code(given),
        words === undefined ? doc : `${doc} ${words}`,
      ];
    }),
  );

export function toolingTable(tools: Readonly<Record<string, ToolEntry>>): string {
  const folders = Object.entries(toolingWords).map(([name, { form, fallback, meaning }]) => [
    code(name),
    form,
    fallback,
    meaning,
  ]);
  const named = Object.entries(tools).map(([name, { variable, minimum }]) => [
    code(variable),
    'path of a program',
    'found or fetched',
    `${toolWords[name as keyof typeof toolWords]}${minimum === undefined ? '' : ` ${minimum.join('.')} or newer.`}`,
  ]);
  return table(['Variable', 'Form', 'Default', 'Meaning'], [...folders, ...named]);
}

/** The part of JSON Schema that query parameters use. */
interface ParameterSchema {
  readonly type?: string;
  readonly enum?: readonly string[];
  readonly minimum?: number;
  readonly maximum?: number;
}

function parameterText(name: string, { schema, fallback }: QueryParameter): string {
  const { minimum, maximum, enum: choices }: ParameterSchema = schema;
  const range = minimum === undefined ? '' : ` ${minimum}–${maximum}`;
  const values = choices === undefined ? '' : ` ${choices.join(', ')}`;
  const otherwise = fallback === undefined ? '' : ` (${fallback})`;
  return `${code(name)}${range}${values}${otherwise}`;
}

export function routesTable(routes: readonly Route[], ...accesses: readonly Access[]): string {
  const hasScopes = accesses.some((access) => access !== 'public' && access !== 'pac');
  return table(
    ['Method', 'Path', 'Query (default)', 'Success', ...(hasScopes ? ['Scopes'] : []), 'Errors', 'What it does'],
    routes
      .filter(({ access }) => accesses.includes(access))
      .map((route) => [
        route.method,
        code(route.path),
        Object.entries(route.query ?? {})
          .map(([name, parameter]) => parameterText(name, parameter))
          .join('<br>'),
        `${successStatus[route.success]}${route.streams === undefined ? '' : route.media === undefined ? ', or a stream' : ', a stream'}`,
        ...(hasScopes ? [(route.scopes ?? []).map((scope) => code(scopeText(scope))).join('<br>')] : []),
        route.errors.map((error) => `${errorStatus[error]} ${error}`).join('<br>'),
        route.summary,
      ]),
  );
}

/** Errors that a route may return besides those of its row. */
export const commonErrorsTable = (): string => {
  const rows: [string, readonly ErrorCode[]][] = [
    ['any route', commonErrors],
    ['a route that requires credentials', authErrors],
  ];
  return table(
    ['Route', 'Other errors'],
    rows.map(([what, codes]) => [what, codes.map((error) => `${errorStatus[error]} ${error}`).join(', ')]),
  );
};
