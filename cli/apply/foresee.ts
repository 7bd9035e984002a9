/**
 * Completes a plan by dry runs of its writes. Only the server knows whether it refuses a write, and
 * whether another container takes the place of the running one, on this or another host.
 */
import { ApiError } from '../client/errors.ts';
import type { Context } from '../context.ts';
import { planned, secretsOf, type DocumentBody } from '../tenant/document.ts';
import { wordsOf } from '../terminal/errors.ts';
import type { Remark } from './file/tree.ts';
import { inParallel, type Found } from './found.ts';
import type { ContainerChange, ContainerCreate, Plan, Step } from './plan.ts';

type Write = (ContainerCreate | ContainerChange) & { readonly body: DocumentBody };

/** True if no earlier step decides whether the server refuses this one. */
function isForeseeable(step: Step, { secrets }: Found): step is Write {
  if (step.kind !== 'container' || step.action === 'remove' || step.body === undefined) return false;
  if (step.action === 'create' && step.after !== undefined) return false;
  return secretsOf(step.wanted.document).every((name) => secrets.has(name));
}

/** Sends no dry runs if the plan has faults. */
export async function foreseen(context: Pick<Context, 'api'>, plan: Plan, found: Found): Promise<Plan> {
  if (plan.faults.length > 0) return plan;
  const faults: Remark[] = [];
  const steps = await inParallel(plan.steps, async (step) => {
    if (!isForeseeable(step, found)) return step;
    try {
      const answer = await planned(context, step.body, step.action === 'create' ? undefined : step.found.id);
      if (answer === undefined || step.action === 'create') return step;
      const { action, move } = answer;
      // Not known yet: the tag may name another image by now.
      const isOpen = step.wanted.isPulled && action !== 'replace';
      return {
        ...step,
        ...(isOpen ? {} : { isReplaced: action === 'replace' }),
        ...(move === undefined ? {} : { move }),
      };
    } catch (error) {
      faults.push(...refusalOf(step, error));
      return step;
    }
  });
  return { steps, faults };
}

/** @throws errors that are no refusal of this write */
function refusalOf({ wanted: { remark } }: Write, error: unknown): Remark[] {
  if (!(error instanceof ApiError)) throw error;
  // A token that may only read sees the plan without these remarks.
  if (error.code === 'forbidden') return [];
  const ofFields = Object.entries(error.details).flatMap(([field, texts]) =>
    texts.map((text) => remark(text, ...field.split('.'))),
  );
  if (ofFields.length > 0) return ofFields;
  if (error.code !== 'over_quota' && error.status !== 409) throw error;
  return [remark(wordsOf(error).replaceAll('\n', ': '))];
}
