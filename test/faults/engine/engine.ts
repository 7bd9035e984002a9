/**
 * The simulated engine with trouble by a seed: delays, connections that break before or after the
 * work, and calls that fail for one tenant. It also says what runs, what ran, what was written, and
 * what ran twice.
 */
import { sleep } from '../../../lib/time/backoff.ts';
import { jobsTenant, missingTag, slowTag, updatesTenant } from '../load/tenants.ts';
import { labels as ours } from '../../../host-agent/docker/ownership.ts';
import type { Random } from '../../actors/support/random.ts';
import type { EngineCall } from '../../support/engine/api.ts';
import { EngineModel, refusal, type EngineCounts, type SimulatedContainer } from '../../support/engine/model.ts';
import { startSimulatedEngine, type Verdict } from '../../support/engine/server.ts';
import { startPrograms, type Programs } from './programs.ts';

export interface Running {
  readonly dockerId: string;
  readonly tenant: string;
  readonly container: string;
  readonly tag: string;
  /** It has the network that it was made with. */
  readonly hasNetwork: boolean;
}

export interface TroubledEngine {
  /** A value for DOCKER_HOST. */
  readonly host: string;
  running(): readonly Running[];
  /** One sentence for each container that ran twice at the same time. */
  readonly doubles: readonly string[];
  readonly counts: Readonly<EngineCounts>;
  readonly programs: Pick<Programs, 'series' | 'runs'>;
  /** Calls that went wrong. */
  troubles(): number;
  /**
   * From now on some calls go wrong: a connection breaks before or after the work; a call about the
   * unlucky tenant fails with 500.
   */
  setTrouble(isOn: boolean): void;
  /** Turns lines of running containers on or off. */
  setTalking(isOn: boolean): void;
  /**
   * Ends a container of the unlucky tenant and one of those that are updated, and removes a job
   * that runs, as a person does by hand.
   */
  crashSome(): void;
  close(): Promise<void>;
}

/** One call in so many goes wrong. */
const cutOnceIn = 300;
/** An agent asks for a log seldom. */
const logCutOnceIn = 15;
const errorOnceIn = 50;
const delayMaxMs = 15;
const stopMaxMs = 300;
const pullMaxMs = 200;

/** `unlucky`: the tenant whose containers crash and fail; the others only lose connections. */
export async function startTroubledEngine(
  socketPath: string,
  unlucky: string,
  random: Random,
): Promise<TroubledEngine> {
  const model = new EngineModel();
  let hasTrouble = false;
  let troubles = 0;
  const pause = (maxMs: number): Promise<void> => sleep(random.below(maxMs));

  /** Images are named after tenants (requests.ts). */
  const isUnlucky = ({ path, body, query, container }: EngineCall): boolean => {
    if (path.startsWith('/images/')) {
      return path.includes(`/${unlucky}:`) || query.get('fromImage')?.includes(`/${unlucky}:`) === true;
    }
    if (path === '/containers/create') return Buffer.from(body).includes(`"${ours.tenant}":"${unlucky}"`);
    return container?.labels[ours.tenant] === unlucky;
  };

  const troubleOf = (call: EngineCall): Verdict => {
    if (!hasTrouble) return undefined;
    if (isUnlucky(call) && random.once(errorOnceIn)) return refusal(500, 'the simulated engine has a bad moment');
    const onceIn = call.path.endsWith('/logs') ? logCutOnceIn : cutOnceIn;
    return random.once(onceIn) ? random.pick(['cut', 'cut_after']) : undefined;
  };

  const tagOf = (made: SimulatedContainer): string => model.referenceOf(made)?.split(':').at(-1) ?? '';

  const programs = startPrograms(model, tagOf, random);

  const intercept = async (call: EngineCall): Promise<Verdict> => {
    await pause(delayMaxMs);
    const reference = call.query.get('fromImage') ?? '';
    if (reference.endsWith(`:${missingTag}`)) {
      return refusal(404, `manifest for ${reference} not found: manifest unknown`);
    }
    if (reference.endsWith(`:${slowTag}`)) return 'hang';
    const trouble = troubleOf(call);
    if (trouble !== undefined) troubles += 1;
    const { container } = call;
    const isStopped = call.path.endsWith('/stop') && container?.state.status === 'running';
    if (isStopped) {
      const hears = trouble === undefined || trouble === 'cut_after';
      programs.asked(container, hears);
      if (hears) await pause(stopMaxMs);
    }
    return trouble;
  };

  /** A running container of the tenant. */
  const oneOf = (tenant: string): SimulatedContainer | undefined => {
    const up = model.running().filter(({ labels }) => labels[ours.tenant] === tenant);
    return up[random.below(Math.max(1, up.length))];
  };

  const engine = await startSimulatedEngine(model, { socketPath, intercept, pull: () => pause(pullMaxMs) });
  return {
    host: engine.host,
    running: () =>
      model.running().map((made) => ({
        dockerId: made.id,
        tenant: made.labels[ours.tenant] ?? '',
        container: made.labels[ours.container] ?? '',
        tag: tagOf(made),
        hasNetwork: model.hasNetwork(made),
      })),
    doubles: model.doubles,
    counts: model.counts,
    programs,
    troubles: () => troubles,
    setTrouble: (isOn) => {
      hasTrouble = isOn;
    },
    setTalking: (isOn) => programs.setTalking(isOn),
    crashSome: () => {
      const victim = oneOf(unlucky);
      const sandbox = victim === undefined ? undefined : model.sandboxOf(victim);
      // The container runs on, without a network.
      if (sandbox !== undefined && random.below(2) === 0) model.exit(sandbox, 137);
      else if (victim !== undefined) programs.end(victim, 1);
      const updated = oneOf(updatesTenant);
      if (updated !== undefined) programs.end(updated, 1);
      const job = oneOf(jobsTenant);
      if (job === undefined) return;
      programs.remove(job);
    },
    close: () => {
      programs.stop();
      return engine.close();
    },
  };
}
