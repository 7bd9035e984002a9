/**
 * Updates the demo container in place, with a health check that the update waits for, and says what
 * came of it.
 */
import { sleep } from '../../lib/time/backoff.ts';
import type { Container, UpdateView } from '../../schemas/api/container.ts';
import { demoImage, pushDemoImage } from '../servers/registry.ts';
import { say } from '../steps.ts';
import type { Stack } from '../stack/stack.ts';

const nextTag = '2';
const policy = { health: { http: { port: 8080, path: '/' }, interval: 2 } };
const deadlineMs = 60_000;
const pollMs = 200;

/** Only once: a later start finds the new version. */
export const isToBeUpdated = ({ repository, tag }: Container): boolean =>
  repository === demoImage.repository && tag === demoImage.tag;

/** @throws Error when the signal aborts, or after a deadline */
export async function updateDemo({ api, image, tokens }: Stack, id: string, signal: AbortSignal): Promise<void> {
  const { token } = tokens.tenants.demo;
  await pushDemoImage(image.registry, nextTag);
  await api.putPolicy(token, id, policy);
  const startMs = performance.now();
  await api.patch(token, id, { tag: nextTag });
  const { phase, reason } = await updateEnded({ api, token, id }, signal);
  const took = `${((performance.now() - startMs) / 1000).toFixed(1)} s`;
  const { repository, tag } = demoImage;
  if (phase === 'done')
    say(`  update     demo runs ${repository}:${nextTag} in the place of :${tag}; healthy (GET / on 8080) … ${took}`);
  else say(`  update     demo runs ${repository}:${tag} again: ${reason ?? 'no reason'} … ${took}`);
}

async function updateEnded(
  { api, token, id }: { readonly api: Stack['api']; readonly token: string; readonly id: string },
  signal: AbortSignal,
): Promise<UpdateView> {
  const endMs = performance.now() + deadlineMs;
  for (;;) {
    const { update } = await api.status(token, id);
    if (update?.phase === 'done' || update?.phase === 'rolled_back') return update;
    if (performance.now() > endMs) throw new Error(`the update of the demo container is still ${update?.phase}`);
    await sleep(pollMs, signal);
    signal.throwIfAborted();
  }
}
