/** A plan and its outcome, for people and for programs. Pure. */
import { oneLine } from '../../schemas/visible.ts';
import { isChange, type Difference, type Move, type Plan, type Step } from './plan.ts';

const signs: Readonly<Record<Step['action'], string>> = {
  create: '+',
  set: '?',
  update: '~',
  start: '>',
  pull: '?',
  wait: '=',
  keep: '=',
  remove: '-',
};

const valueChars = 60;

/** Quotes a value with special characters, and cuts a long one. */
function valueText(value: string): string {
  const quoted = /^[!-~][ -~]*$/.test(value) ? value : JSON.stringify(value);
  return quoted.length > valueChars ? `${quoted.slice(0, valueChars)}…` : quoted;
}

function differenceText({ field, from, to }: Difference): string {
  const name = oneLine(field);
  if (from === null) return `${name}: ${valueText(to ?? '')}`;
  return `${name}: ${valueText(from)} → ${to === null ? '(none)' : valueText(to)}`;
}

const notes: Partial<Record<Step['action'], string>> = {
  set: 'its value is sent; the same value changes nothing',
  start: 'is as declared, and is started',
  pull: 'its tag is looked at again; the same image changes nothing',
  wait: 'is as declared, and is not up yet',
};

const nameOf = ({ kind, name }: Step): string => `${kind} ${oneLine(name)}`;

/** True if an update replaces the container; `undefined` if the server was not asked. */
const isReplaced = (step: Step): boolean | undefined =>
  step.kind === 'container' && step.action === 'update' ? step.isReplaced : undefined;

const moveOf = (step: Step): Move | undefined => (step.kind === 'container' && 'move' in step ? step.move : undefined);

function moveText({ from, to, volumes }: Move): string {
  const data = volumes.length === 0 ? '' : `: its data in ${volumes.join(', ')} stays on ${from}`;
  return `leaves ${from} for ${to}, and nothing that it wrote goes along${data}`;
}

const stepText = (step: Step): string => {
  const move = moveOf(step);
  const note = isReplaced(step) === false ? 'nothing starts again' : notes[step.action];
  return [
    `${signs[step.action]} ${nameOf(step)}${note === undefined ? '' : `  (${note})`}`,
    ...step.differences.map((difference) => `    ${differenceText(difference)}`),
    ...(move === undefined ? [] : [`  ! ${oneLine(moveText(move))}`]),
  ].join('\n');
};

const actions = [
  ['create', 'to create'],
  ['update', 'to update'],
  ['start', 'to start'],
  ['pull', 'to pull'],
  ['set', 'to send'],
  ['remove', 'to remove'],
] as const;

export function planText({ steps }: Pick<Plan, 'steps'>): string {
  const count = (action: Step['action']): number => steps.filter((step) => step.action === action).length;
  const counts = actions.flatMap(([action, words]) => (count(action) === 0 ? [] : [`${count(action)} ${words}`]));
  const same = count('keep') + count('wait');
  const summary = [...counts, ...(same === 0 ? [] : [`${same} as declared`])].join(', ');
  return [...steps.map(stepText), `Plan: ${summary === '' ? 'nothing is declared' : summary}.`].join('\n');
}

/**
 * - `changed`, `same`: done.
 * - `failed`: ended the work by a failure or an interruption, maybe half done.
 * - `left`: not begun.
 */
export type Outcome = 'changed' | 'same' | 'failed' | 'left';

export interface Done {
  readonly step: Step;
  readonly outcome: Outcome;
}

export function doneText(done: readonly Done[]): string {
  const changed = done.filter(({ outcome }) => outcome === 'changed').map(({ step }) => nameOf(step));
  if (changed.length === 0) return 'Done: nothing has changed.';
  const same = done.length - changed.length;
  return `Done: ${changed.join(', ')} changed${same === 0 ? '' : `, ${same} as before`}.`;
}

/** Steps done before it stopped, and those not done. */
export function stoppedText(done: readonly Done[]): string {
  const names = (outcomes: readonly Outcome[]): string =>
    done.flatMap(({ step, outcome }) => (outcomes.includes(outcome) ? [nameOf(step)] : [])).join(', ') || 'nothing';
  const at = done.find(({ outcome }) => outcome === 'failed');
  const place = at === undefined ? '' : ` at ${nameOf(at.step)}`;
  const left = done.some(({ outcome }) => outcome === 'left') ? ` Not begun: ${names(['left'])}.` : '';
  return `Stopped${place}. Done: ${names(['changed', 'same'])}.${left} The same command again goes on.`;
}

/** The result for programs. */
export const valueOf = (done: readonly Done[], isDryRun: boolean, error?: string) => ({
  dry_run: isDryRun,
  ...(error === undefined ? {} : { error }),
  changes: done.filter(({ step }) => isChange(step)).length,
  steps: done.map(({ step, outcome }) => ({
    kind: step.kind,
    name: step.name,
    action: step.action,
    ...(isReplaced(step) === undefined ? {} : { replaces: isReplaced(step) }),
    ...(moveOf(step) === undefined ? {} : { move: moveOf(step) }),
    differences: step.differences,
    ...(isDryRun ? {} : { outcome }),
  })),
});
