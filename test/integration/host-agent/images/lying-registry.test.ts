/** A registry that sends other bytes than a digest names: none of them runs (ADR 38). */
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import t, { type Test } from 'tap';
import { mediaTypes } from '../../../../dev/servers/image.ts';
import { pushLayers } from '../../../host-agent/support/layers.ts';
import { startRig, steady } from '../../../host-agent/support/rig.ts';

t.setTimeout(120_000);

/** Before a registry; changes what it answers for a path. */
async function lyingRegistry(t: Test, registry: string, lie: (path: string, body: Buffer) => Buffer) {
  const server = createServer((request, response) => {
    const { url: path = '/', method = 'GET' } = request;
    const answer = async (): Promise<void> => {
      const accept = request.headers.accept ?? '*/*';
      const real = await fetch(`http://${registry}${path}`, { method, headers: { accept } });
      const body = lie(path, Buffer.from(await real.arrayBuffer()));
      const headers = Object.fromEntries([...real.headers].filter(([name]) => name !== 'content-length'));
      const length = method === 'HEAD' ? real.headers.get('content-length') : body.length;
      response.writeHead(real.status, { ...headers, 'content-length': String(length) }).end(body);
    };
    void answer().catch(() => response.destroy());
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  t.teardown(() => {
    server.closeAllConnections();
    return new Promise((resolve) => server.close(resolve));
  });
  return `127.0.0.1:${(server.address() as AddressInfo).port}`;
}

t.test('other bytes for a digest are refused', async (t) => {
  const rig = await startRig(t);
  rig.agent();
  // Of its own bytes each time: the engine fetches nothing that it has.
  const push = () =>
    pushLayers(rig.registry, { repository: 'longshore/lies', tag: '1', sizes: [1000], cmd: ['sh', '-c', steady] });
  const digestOf = async (): Promise<string> => {
    const headers = { accept: mediaTypes.manifest };
    const url = `http://${rig.registry}/v2/longshore/lies/manifests/1`;
    return (await fetch(url, { method: 'HEAD', headers })).headers.get('docker-content-digest') ?? '';
  };
  const flipped = (body: Buffer): Buffer =>
    Buffer.concat([body.subarray(0, -1), Buffer.from([(body.at(-1) ?? 0) ^ 1])]);
  for (const [what, lie, reason] of [
    [
      'a manifest',
      (path: string, body: Buffer) => (path.includes('/manifests/') ? Buffer.from(`${body} `) : body),
      'image_invalid',
    ],
    [
      'a blob',
      (path: string, body: Buffer) => (path.includes('/blobs/') ? flipped(body) : body),
      /image_(invalid|pull)/,
    ],
  ] as const) {
    await push();
    const digest = await digestOf();
    const lying = await lyingRegistry(t, rig.registry, lie);
    const { id } = rig.controlPlane.desire({ registry: lying, repository: 'longshore/lies', tag: null, digest });
    const { observation } = await rig.controlPlane.reported(id, ({ observation: { status } }) =>
      ['running', 'failed', 'backoff'].includes(status),
    );
    t.match(observation, { status: /failed|backoff/, reason }, what);
    t.same(await rig.engine.containers(id), [], what);
  }
});
