/**
 * Carries out a plan, one step after another. Each step may be repeated: after an interruption the
 * rest is planned again and finished.
 */
import { dataOf, doneOf, orNone, writtenOf } from '../client/api.ts';
import { ApiError, InterruptedError } from '../client/errors.ts';
import { settled, type StatusView } from '../client/wait.ts';
import type { Context } from '../context.ts';
import { createFrom, replaceBy, secretsOf, type DocumentBody } from '../tenant/document.ts';
import { goalOf, type Goal } from '../tenant/done.ts';
import { watchDone } from '../tenant/progress.ts';
import { untilGone } from '../tenant/rest.ts';
import { keptBy, keptText, untilRolled } from '../tenant/rolled.ts';
import { secretBody } from '../tenant/secrets.ts';
import { Refused } from '../terminal/errors.ts';
import type { WantedContainer } from './file/model.ts';
import type { Values } from './file/values.ts';
import type { ContainerChange, ContainerCreate, PeerChange, PeerCreate, Removal, SetStep, Step } from './plan.ts';
import type { Done, Outcome } from './show.ts';

/** Longest question whether a container that `apply` keeps is done already. */
const cliKeptLookMs = 1000;

export interface Work {
  readonly context: Context;
  readonly values: Values;
  /** Waits for no container. */
  readonly isDetached: boolean;
  /** Longest wait for each container. */
  readonly timeoutS: number;
  /** Time that a container without a health check must stay up. */
  readonly stableS: number;
}

/** Results of all steps, and the reason for an early end. */
export interface Result {
  readonly done: readonly Done[];
  readonly error?: unknown;
}

export async function carryOut(work: Work, steps: readonly Step[]): Promise<Result> {
  const done: Done[] = [];
  /** Secrets with another value than before. */
  const rolled = new Set<string>();
  const { signal } = work.context.terminal;
  const leave = (): Done[] => steps.slice(done.length).map((step) => ({ step, outcome: 'left' }));
  for (const step of steps) {
    if (signal.aborted) return { done: [...done, ...leave()], error: new InterruptedError() };
    try {
      done.push({ step, outcome: await execute(work, step, rolled) });
    } catch (error) {
      done.push({ step, outcome: 'failed' });
      return { done: [...done, ...leave()], error };
    }
  }
  return { done };
}

async function execute(work: Work, step: Step, rolled: Set<string>): Promise<Outcome> {
  if (step.action === 'remove') return remove(work, step);
  switch (step.kind) {
    case 'registry':
    case 'secret':
      return set(work, step, rolled);
    case 'container':
      return step.action === 'create' ? create(work, step) : change(work, step, rolled);
    case 'peer':
      return step.action === 'create' ? createPeer(work, step) : changePeer(work, step);
  }
}

async function set({ context: { api, tell }, values }: Work, step: SetStep, rolled: Set<string>): Promise<Outcome> {
  const { kind, name } = step;
  if (kind === 'registry') {
    const password = (values.registries.get(name) ?? Buffer.alloc(0)).toString('utf8');
    const body = { username: step.wanted.username, password };
    const params = { path: { registry: name } };
    const { updated_at } = await dataOf(api.PUT('/api/v2/compute/registries/{registry}', { params, body }));
    return updated_at === step.before ? 'same' : 'changed';
  }
  const body = secretBody(values.secrets.get(name) ?? Buffer.alloc(0));
  const { version } = await dataOf(
    api.PUT('/api/v2/compute/secrets/{secret}', { params: { path: { secret: name } }, body }),
  );
  if (String(version) === step.before) return 'same';
  rolled.add(name);
  tell(`secret ${name}: version ${version}`);
  return 'changed';
}

/** A job of a Compose file may be started again on failure. */
const goalIn = ({ stableS }: Work, { document, isJob }: WantedContainer): Goal =>
  goalOf(document.policy, stableS, isJob);

const queryOf = ({ isPulled }: WantedContainer) => (isPulled ? { pull: 'always' as const } : {});

const pathOf = (id: string) => ({ path: { id } });

async function create(work: Work, { wanted, body, after, name }: ContainerCreate): Promise<Outcome> {
  const { context, isDetached, timeoutS } = work;
  if (after !== undefined) {
    context.tell(`${name}: the one before is being removed`);
    await untilGone(context, { id: after, name }, timeoutS);
  }
  const { data: container, generation } = await createFrom(context, body, queryOf(wanted));
  if (!isDetached) await watchDone(context, container, { goal: goalIn(work, wanted), generation, seconds: timeoutS });
  return 'changed';
}

const started = ({ api }: Context, id: string) =>
  writtenOf(api.POST('/api/v2/compute/{id}/start', { params: pathOf(id) }));

async function change(work: Work, step: ContainerChange, rolled: ReadonlySet<string>): Promise<Outcome> {
  const { context, isDetached, timeoutS } = work;
  const { found, wanted, body, isRetried, name } = step;
  const { id } = found;
  const changed = secretsOf(found.document).filter((secret) => rolled.has(secret));
  const user = { id, name, generation: found.status.generation };
  const isRolled =
    changed.length > 0 &&
    (isDetached ||
      (await untilRolled(context, user, { secrets: changed, goal: goalIn(work, wanted), seconds: timeoutS })));
  const written = body === undefined ? undefined : await write(context, step, body);
  const generation = isRetried ? (await started(context, id)).generation : written;
  await tellKept(context, step);
  const isSame = step.action === 'keep' || step.action === 'wait';
  const goal = goalIn(work, wanted);
  let view: StatusView | undefined;
  if (!isDetached && !(step.action === 'keep' && !isRolled && (await isLongDone(work, step, goal))))
    view = await watchDone(context, { id, name }, { goal, generation, seconds: timeoutS });
  if (step.action === 'pull' && view?.update?.unmoved === true) return isRolled ? 'changed' : 'same';
  return isSame && !isRolled ? 'same' : 'changed';
}

/**
 * A run that its policy allows once is not interrupted for a secret: it keeps the earlier value.
 */
async function tellKept(context: Context, { found: { id }, wanted: { document }, name }: ContainerChange) {
  const secrets = secretsOf(document);
  if (document.policy.restart !== 'never' || secrets.length === 0) return;
  const kept = await keptBy(context, id, secrets);
  if (kept.length > 0) context.tell(keptText(name, kept.join(', ')));
}

/** True if the container was done before, so that it needs no line. */
async function isLongDone({ context: { api } }: Work, { found }: ContainerChange, goal: Goal): Promise<boolean> {
  const { generation } = found.status;
  const view = await settled(api, found.id, { ...goal, generation }, cliKeptLookMs);
  return view?.outcome === 'done';
}

/** Writes only if the container is declared as when the plan was made. */
async function write(
  context: Context,
  { found, wanted, name }: ContainerChange,
  body: DocumentBody,
): Promise<number | undefined> {
  try {
    return await replaceBy(context, found.id, found.etag, body, queryOf(wanted));
  } catch (error) {
    if (!(error instanceof ApiError) || error.status !== 412) throw error;
    throw new Refused(`somebody else has changed ${name} meanwhile: look at it, and run this again`);
  }
}

async function createPeer({ context: { api, tell } }: Work, { name, wanted }: PeerCreate): Promise<Outcome> {
  const { enabled, ...fields } = wanted.fields;
  const { id } = await dataOf(api.POST('/api/forage/peers', { body: { name, ...fields } }));
  tell(`peer ${name}: ${id}; its files: "longshore peer link ${name}"`);
  if (enabled === false) await disable(api, id);
  return 'changed';
}

const disable = (api: Context['api'], peer: string): Promise<void> =>
  doneOf(api.PATCH('/api/forage/peers/{peer}', { params: { path: { peer } }, body: { enabled: false } }));

async function changePeer({ context: { api } }: Work, { action, id, patch }: PeerChange): Promise<Outcome> {
  if (action === 'keep') return 'same';
  await doneOf(api.PATCH('/api/forage/peers/{peer}', { params: { path: { peer: id } }, body: patch }));
  return 'changed';
}

/** A resource that is gone already is in its desired state. */
async function remove({ context, timeoutS }: Work, { kind, id, name }: Removal): Promise<Outcome> {
  const { api } = context;
  const deletion = {
    container: () => api.DELETE('/api/v2/compute/{id}', { params: pathOf(id) }),
    secret: () => api.DELETE('/api/v2/compute/secrets/{secret}', { params: { path: { secret: id } } }),
    registry: () => api.DELETE('/api/v2/compute/registries/{registry}', { params: { path: { registry: id } } }),
    peer: () => api.DELETE('/api/forage/peers/{peer}', { params: { path: { peer: id } } }),
  }[kind];
  await orNone(doneOf(deletion()));
  // A container uses its secrets until it is gone.
  if (kind === 'container') await untilGone(context, { id, name }, timeoutS);
  return 'changed';
}
