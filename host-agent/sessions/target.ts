/** The container on the engine that a session is about. */
import type { SessionAbout, SessionEnd } from '../../schemas/wire/session.ts';
import type { CachedEngine } from '../docker/cached-engine.ts';
import { observe, observedFrom, type Found, type RunId } from '../docker/observed.ts';
import type { Wanted } from '../desired/wanted.ts';

export interface SessionTarget {
  readonly dockerId: string;
  readonly run: RunId;
  /** Its own address on the bridge of the containers; `undefined` if it has none. */
  readonly ip: string | undefined;
  /** The ports that it publishes, at addresses that other machines reach. */
  readonly addresses: Running['addresses'];
}
type Running = Extract<Found['state'], { phase: 'running' }>;

/**
 * The container as its owner placed it here. The gateway is not asked for its tenant: the desired
 * set names it, and so do the labels on the engine.
 */
export async function targetOf(
  engine: Pick<CachedEngine, 'idsOf' | 'inspect' | 'endOf'>,
  wanted: Wanted,
  { tenant, id, placement }: SessionAbout,
): Promise<SessionTarget | SessionEnd> {
  const isOurs =
    'container' in wanted && wanted.container.tenant === tenant && wanted.container.placement === placement;
  if (!isOurs) return { reason: 'not_running', message: 'the container is not on this host any more' };
  const copies = await observe(engine, id, false);
  const running = copies.filter(
    (copy) => copy.tenant === tenant && copy.placement === placement && copy.state.phase === 'running',
  );
  const observed = observedFrom(running, wanted.spec);
  if (observed.kind === 'absent' || observed.found.state.phase !== 'running') {
    return { reason: 'not_running', message: 'the container does not run' };
  }
  const { dockerId, state } = observed.found;
  return { dockerId, run: state.run, ip: state.ip, addresses: state.addresses };
}
