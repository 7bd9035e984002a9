/** The simulated engine of one test, on the clock that the test gives. */
import type { Test } from 'tap';
import { EngineModel } from '../../support/engine/model.ts';
import { startSimulatedEngine, type SimulatedEngine } from '../../support/engine/server.ts';

/** `nowMs`: the wall clock of the engine's machine. */
export async function simulatedEngine(t: Test, nowMs: () => number = Date.now): Promise<SimulatedEngine> {
  const engine = await startSimulatedEngine(new EngineModel({ nowMs }));
  t.teardown(() => engine.close());
  return engine;
}

/** The statuses of all containers on the engine; sandboxes are not among them. */
export const statusesOn = ({ model }: SimulatedEngine): string[] => model.ofTenants().map(({ state }) => state.status);
