/** `apply`: creates and updates resources from files. */
import type { Context } from '../context.ts';
import { codeOf, Exit, Refused, wordsOf, WrongUsage } from '../terminal/errors.ts';
import { askLine } from '../terminal/input.ts';
import type { WaitOptions } from '../terminal/arguments.ts';
import { InterruptedError } from '../client/errors.ts';
import { filesIn, usualFiles, type Here } from './compose/project.ts';
import { carryOut } from './execute.ts';
import { withoutRemovals } from './file/model.ts';
import { readFiles } from './file/read.ts';
import { textOfRemark, type Remark } from './file/tree.ts';
import { foreseen } from './foresee.ts';
import { findAll } from './found.ts';
import { planOf, type Plan } from './plan.ts';
import { doneText, planText, stoppedText, valueOf, type Done } from './show.ts';

const filesMax = 16;
const remarksShown = 50;

export interface ApplyOptions extends WaitOptions {
  /** The usual file of this folder if absent. */
  readonly file?: readonly string[];
  readonly prune?: true;
  readonly yes?: true;
  readonly dryRun?: true;
  readonly detach?: true;
  readonly projectName?: string;
  readonly ignore?: readonly string[];
}

function remarksText(remarks: readonly Remark[]): string {
  const lines = remarks.slice(0, remarksShown).map(textOfRemark);
  const more = remarks.length - lines.length;
  return [...lines, ...(more > 0 ? [`and ${more} more`] : [])].join('\n');
}

function refuseFaults(faults: readonly Remark[]): void {
  if (faults.length > 0) throw new Refused(`${remarksText(faults)}\nNothing has been changed.`);
}

function filesHere({ tell, terminal }: Context): Here {
  const here = filesIn({ folder: process.cwd(), env: terminal.env });
  if (here === undefined)
    throw new Refused(`there is no file to apply here: name one with -f, or write one of ${usualFiles.join(', ')}`);
  const { file, overrides, others } = here;
  if (overrides.length > 0) tell(`${overrides.join(', ')} is merged over ${file}: -f names the files that count`);
  if (others.length > 0) tell(`${file} is applied; ${others.join(', ')} is here, too: -f names another file`);
  else if (file.startsWith('..')) tell(`${file} is applied`);
  return here;
}

export async function apply(context: Context, options: ApplyOptions): Promise<void> {
  const { file, prune = false, timeout, stable, dryRun = false, detach = false } = options;
  const here = file === undefined ? filesHere(context) : undefined;
  const files = file ?? [here?.file ?? ''];
  if (files.length > filesMax) throw new WrongUsage(`-f: give at most ${filesMax} files`);
  if (files.filter((file) => file === '-').length > 1) throw new WrongUsage('-f -: standard input is one file');
  const { wanted, values, faults, warnings } = await readFiles(files, context.terminal, {
    project: options.projectName,
    ignore: options.ignore,
    overrides: here?.overrides,
  });
  if (warnings.length > 0) context.tell(remarksText(warnings));
  refuseFaults(faults);
  if (wanted === undefined) return;
  if (prune && wanted.projects.length === 0)
    throw new Refused('--prune: give the file a name ("name: shop" at its top), which says what is of this file');
  const asked = prune ? wanted : withoutRemovals(wanted);
  const found = await findAll(context, asked);
  const ofFile = planOf(asked, found);
  refuseFaults(ofFile.faults);
  const plan = await foreseen(context, ofFile, found);
  refuseFaults(plan.faults);
  if (!context.isJson) context.show(undefined, planText(plan));
  if (dryRun) {
    if (context.isJson)
      context.show(
        valueOf(
          plan.steps.map((step): Done => ({ step, outcome: 'left' })),
          true,
        ),
        '',
      );
    return;
  }
  await confirm(context, plan, options);
  const work = { context, values, isDetached: detach, timeoutS: timeout, stableS: stable };
  const { done, error } = await carryOut(work, plan.steps);
  if (context.isJson || error === undefined)
    context.show(valueOf(done, false, error === undefined ? undefined : wordsOf(error)), doneText(done));
  if (error === undefined) return;
  if (!(error instanceof InterruptedError)) context.tell(wordsOf(error));
  context.tell(stoppedText(done));
  throw new Exit(codeOf(error));
}

/** A removal is final: a person confirms it, and a program passes `--yes`. */
async function confirm({ terminal }: Context, { steps }: Plan, { yes, file = [] }: ApplyOptions): Promise<void> {
  const removed = steps.filter(({ action }) => action === 'remove');
  if (removed.length === 0 || yes === true) return;
  const names = removed.map(({ kind, name }) => `${kind} ${name}`).join(', ');
  if (!terminal.stdin.isTTY || file.includes('-'))
    throw new WrongUsage(`--prune would remove ${names}: give --yes where nobody can be asked`);
  const answer = await askLine(`Remove ${names}? [y/N] `);
  if (!/^y(?:es)?$/i.test(answer)) throw new Refused('Nothing has been changed.');
}
