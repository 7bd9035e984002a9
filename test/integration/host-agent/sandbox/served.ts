/** Containers in sandboxes, on a real engine: what runs, and what answers. */
import type { Test } from 'tap';
import type { ContainerId } from '../../../../schemas/ids.ts';
import { startRig, type Rig } from '../../../host-agent/support/rig.ts';
import { until } from '../../../support/until.ts';

const answerMs = 10_000;

/** Answers on port 8080 until SIGTERM. */
export const server = `mkdir -p /tmp/www; echo here > /tmp/www/index.html; trap 'exit 0' TERM; httpd -f -p 8080 -h /tmp/www & wait $!`;

export const sandboxOf = async ({ engine }: Rig, id: ContainerId): Promise<string> =>
  String((await engine.only(id)).HostConfig['NetworkMode']).replace(/^container:/, '');

export const isUp = ({ observation }: { observation: { status: string } }) => observation.status === 'running';

export const answer = async (address: string): Promise<string> =>
  (await fetch(`http://${address}/`, { signal: AbortSignal.timeout(answerMs) })).text();

/** Waits until the container runs and answers. @returns the address that is reported */
export async function served(
  { controlPlane }: Rig,
  id: ContainerId,
  check: (restarts: number) => boolean = () => true,
) {
  const item = await controlPlane.reported(
    id,
    (item) => isUp(item) && item.observation.addresses.length === 1 && check(item.observation.restart_count),
  );
  const address = item.observation.addresses[0]?.address ?? '';
  await until('an answer', async () => (await answer(address)) === 'here\n');
  return address;
}

/** The sandboxes that the engine has. */
export const sandboxes = async ({ engine, controlPlane }: Rig) => {
  const label = [`longshore.cluster=${controlPlane.cluster}`, 'longshore.sandbox'];
  const filters = encodeURIComponent(JSON.stringify({ label }));
  const { text } = await engine.call('GET', `/containers/json?all=1&filters=${filters}`);
  return (JSON.parse(text) as { Id: string; State: string }[]).map(({ Id, State }) => ({ id: Id, state: State }));
};

/** A container with a published port, which answers. */
export async function startServed(t: Test, dockerHost?: string, env: NodeJS.ProcessEnv = {}) {
  const rig = await startRig(t, dockerHost);
  const image = await rig.script('server', server);
  const process = rig.agent({ LONGSHORE_SANDBOX: 'on', LONGSHORE_SANDBOX_POOL: '2', ...env });
  const { id } = rig.controlPlane.desire({ ...image, ports: [8080] });
  return { rig, image, process, id, address: await served(rig, id) };
}
