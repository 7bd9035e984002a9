/**
 * The simulated engine with trouble by a seed: delays, connections that break before or after the
 * work, and calls that fail for one tenant. It also says what runs, and what ran twice.
 */
import { sleep } from '../../../lib/time/backoff.ts';
import { crashingTag, missingTag } from '../load/tenants.ts';
import { labels as ours } from '../../../host-agent/docker/ownership.ts';
import type { Random } from '../../actors/support/random.ts';
import type { EngineCall } from '../../support/engine/api.ts';
import { EngineModel, refusal, type EngineCounts, type SimulatedContainer } from '../../support/engine/model.ts';
import { startSimulatedEngine, type Verdict } from '../../support/engine/server.ts';

export interface Running {
  readonly dockerId: string;
  readonly tenant: string;
  readonly container: string;
  readonly tag: string;
  /** It has the network that it was made with. */
  readonly hasNetwork: boolean;
}

export interface TroubledEngine {
  /** For DOCKER_HOST. */
  readonly host: string;
  running(): readonly Running[];
  /** One sentence for each container that ran twice at the same time. */
  readonly doubles: readonly string[];
  readonly counts: Readonly<EngineCounts>;
  /** Calls that went wrong. */
  troubles(): number;
  /**
   * From now on some calls go wrong: a connection breaks before or after the work; a call about the
   * unlucky tenant fails with 500.
   */
  setTrouble(isOn: boolean): void;
  /** Ends one container of the unlucky tenant. False: none runs. */
  crashOne(): boolean;
  close(): Promise<void>;
}

/** One call in so many goes wrong. */
const cutOnceIn = 300;
const errorOnceIn = 50;
const delayMaxMs = 15;
const stopMaxMs = 300;
const pullMaxMs = 200;
/** How long an image that crashes runs. */
const crashMaxMs = 300;

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
    return random.once(cutOnceIn) ? random.pick(['cut', 'cut_after']) : undefined;
  };

  const tagOf = (made: SimulatedContainer): string => model.referenceOf(made)?.split(':').at(-1) ?? '';

  const crashSoon = async (made: SimulatedContainer): Promise<void> => {
    await pause(crashMaxMs);
    model.exit(made, 1);
  };

  const intercept = async (call: EngineCall): Promise<Verdict> => {
    await pause(delayMaxMs);
    const reference = call.query.get('fromImage') ?? '';
    if (reference.endsWith(`:${missingTag}`)) {
      return refusal(404, `manifest for ${reference} not found: manifest unknown`);
    }
    const { container } = call;
    if (container !== undefined && call.path.endsWith('/start') && tagOf(container) === crashingTag)
      void crashSoon(container);
    const trouble = troubleOf(call);
    if (trouble !== undefined) troubles += 1;
    const isStopped = call.path.endsWith('/stop') && call.container?.state.status === 'running';
    if (isStopped && (trouble === undefined || trouble === 'cut_after')) await pause(stopMaxMs);
    return trouble;
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
    troubles: () => troubles,
    setTrouble: (isOn) => {
      hasTrouble = isOn;
    },
    crashOne: () => {
      const up = model.running().filter(({ labels }) => labels[ours.tenant] === unlucky);
      const victim = up[random.below(Math.max(1, up.length))];
      const sandbox = victim === undefined ? undefined : model.sandboxOf(victim);
      // The container runs on, without a network.
      if (sandbox !== undefined && random.below(2) === 0) model.exit(sandbox, 137);
      else if (victim !== undefined) model.exit(victim, 1);
      return victim !== undefined;
    },
    close: () => engine.close(),
  };
}
