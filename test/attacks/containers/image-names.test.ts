/**
 * A tenant's registry serves the manifest of an image that others use, under thousands of
 * repositories. The engine keeps each as a name of that one image, and repeats all of them in what
 * it says of it. The others' containers must not feel it, and names that nobody needs must go.
 */
import { existsSync, readFileSync, readdirSync, writeFileSync } from 'node:fs';
import { createServer } from 'node:http';
import type { AddressInfo } from 'node:net';
import { join } from 'node:path';
import t, { type Test } from 'tap';
import { startPrivateEngine } from '../../../dev/servers/engine.ts';
import { labels } from '../../../host-agent/docker/ownership.ts';
import { limits } from '../../../schemas/limits.ts';
import { startRig, steady } from '../../host-agent/support/rig.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { skipWithoutPrivateEngine } from '../../support/servers.ts';
import { engineAnswerBytes } from '../../../host-agent/docker/transport.ts';

t.setTimeout(300_000);

/** Has every repository that it is asked for: each is this one of the registry behind it. */
async function registryOfAnyName(t: Test, registry: string, repository: string): Promise<string> {
  const server = createServer((request, response) => {
    const { url = '/', method = 'GET', headers } = request;
    const path = url.replace(/^\/v2\/.+(?=\/(?:manifests|blobs)\/)/, `/v2/${repository}`);
    const answer = async (): Promise<void> => {
      const real = await fetch(`http://${registry}${path}`, { method, headers: { accept: headers.accept ?? '*/*' } });
      response.writeHead(real.status, Object.fromEntries(real.headers)).end(Buffer.from(await real.arrayBuffer()));
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

/** Gives each image of a stopped engine more names, as so many pulls would. */
function nameMore(dir: string, repository: string, count: number): void {
  const folder = join(dir, 'data', 'image');
  for (const driver of readdirSync(folder)) {
    const path = join(folder, driver, 'repositories.json');
    if (!existsSync(path)) continue;
    const { Repositories } = JSON.parse(readFileSync(path, 'utf8')) as {
      Repositories: Record<string, Record<string, string>>;
    };
    const known = Object.values(Repositories).flatMap((names) => Object.entries(names));
    const [, id] = known.find(([name]) => name.startsWith('127.0.0.1') && !name.includes('@')) ?? [];
    const digest = known.find(([name, of]) => name.includes('@') && of === id)?.[0].split('@')[1];
    if (id === undefined || digest === undefined) throw new Error('the engine has no image with a digest');
    for (let index = 0; index < count; index++) {
      const name = `${repository}${index}`;
      Repositories[name] = { [`${name}:1`]: id, [`${name}@${digest}`]: id };
    }
    writeFileSync(path, JSON.stringify({ Repositories }));
  }
}

t.test('an image of very many names', { skip: skipWithoutPrivateEngine }, async (t) => {
  const dir = temporaryFolder(t);
  const host = await startPrivateEngine({ dir, firewall: true, throwaway: true });
  t.teardown(() => host.stop());
  const { controlPlane, engine, registry, agent, script } = await startRig(t, host.host);
  const { repository, tag } = await script('names', steady);
  const common = { registry, repository: String(repository), tag: String(tag), cpu_millis: 10 };
  const evil = await registryOfAnyName(t, registry, common.repository);
  const isRunning = ({ observation }: { observation: { status: string } }) => observation.status === 'running';
  const names = async (): Promise<string[]> => {
    const { text } = await engine.call('GET', `/images/${registry}/${common.repository}:${common.tag}/json`);
    const { RepoTags, RepoDigests } = JSON.parse(text) as Record<'RepoTags' | 'RepoDigests', string[]>;
    return [...RepoTags, ...RepoDigests];
  };
  let process = agent();

  await t.test('names that no container needs any more go', async (t) => {
    const first = controlPlane.desire(common);
    await controlPlane.reported(first.id, isRunning);
    const runBriefly = async (index: number): Promise<void> => {
      const { id } = controlPlane.desire({ ...common, registry: evil, repository: `n${index}` });
      await controlPlane.reported(id, isRunning);
      controlPlane.desire({ id, desired: 'removed' });
      await controlPlane.reported(id, ({ gone }) => gone);
    };
    const more = 8;
    await Promise.all(Array.from({ length: limits.namesOfImage + more }, (_, index) => runBriefly(index)));
    await runBriefly(limits.namesOfImage + more);
    const left = await names();
    // Of each its tag and its digest; two were needed when the last was pulled.
    t.ok(left.length <= 2 * (limits.namesOfImage + 2), `${left.length} names`);
    t.ok(
      left.some((name) => name.startsWith(`${registry}/`)),
      'not the one that a container needs',
    );
    t.match((await engine.only(first.id)).State, { Running: true });
  });

  await t.test('more names than the agent reads of an image, or of all', async (t) => {
    await process.stop();
    await host.kill9();
    nameMore(dir, `${evil}/${'n'.repeat(200)}`, 10_000);
    await host.start();
    t.ok((await names()).join().length > engineAnswerBytes, 'the engine has them all');
    process = agent({ DISK_INTERVAL: '1s', IMAGES_HIGH_PERCENT: '1', IMAGES_LOW_PERCENT: '0' });

    const other = controlPlane.desire({ ...common, tenant: 'other' });
    const { observation } = await controlPlane.reported(other.id, ({ observation: { status } }) =>
      /running|failed/.test(status),
    );
    t.match(observation, { status: 'running' });
    t.match((await engine.only(other.id)).Config.Labels[labels.digest], /^sha256:/, 'with the digest of its own name');

    const unused = controlPlane.desire({ ...(await script('names-unused', `${steady} # unused`)), cpu_millis: 10 });
    await controlPlane.reported(unused.id, isRunning);
    controlPlane.desire({ id: unused.id, desired: 'removed' });
    await process.logged('image_removed', ({ name }) => String(name).includes('names-unused'));
  });
  await process.stop();
});
