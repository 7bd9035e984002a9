import { writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import t, { type Test } from 'tap';
import { createEngine } from '../../../host-agent/docker/engine.ts';
import type { Call, Reply, Transport } from '../../../host-agent/docker/transport.ts';
import {
  createImageCollector,
  inOrder,
  removalsOf,
  type ImagePolicy,
  type PulledImage,
} from '../../../host-agent/images/collector.ts';
import { createLog } from '../../../lib/log.ts';
import { limits } from '../../../schemas/limits.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { quietDisk } from '../support/disk.ts';

const image = (Id: string, RepoTags: string[] | null, RepoDigests: string[] | null = null, Size?: number) => ({
  Id,
  RepoTags,
  RepoDigests,
  ...(Size === undefined ? {} : { Size }),
});
const pulled = (id: string, reference: string, usedAtMs = 0): PulledImage => ({ id, reference, usedAtMs });

const cases: readonly [
  name: string,
  images: ReturnType<typeof image>[],
  pulled: PulledImage[],
  policy: ImagePolicy,
  expected: string[],
][] = [
  ['an unused image that the agent pulled', [image('a', ['r:1'])], [pulled('a', 'r:1')], 'pulled', ['r:1']],
  ['not an image of others', [image('a', ['r:1'])], [], 'pulled', []],
  ['not an untagged image of others', [image('a', null)], [], 'pulled', []],
  ['any unused image, if all are collected', [image('a', ['r:1', 's:1'])], [], 'all', ['r:1', 's:1']],
  ['not the tags of others', [image('a', ['r:1', 's:1'])], [pulled('a', 'r:1')], 'pulled', ['r:1']],
  [
    'the longest unused first',
    [image('a', ['r:1']), image('b', ['r:2'])],
    [pulled('a', 'r:1', 2), pulled('b', 'r:2', 1)],
    'pulled',
    ['r:2', 'r:1'],
  ],
  [
    'of those unused for as long, the largest first',
    [image('a', ['r:1'], null, 10), image('b', ['r:2'], null, 20)],
    [pulled('a', 'r:1'), pulled('b', 'r:2')],
    'pulled',
    ['r:2', 'r:1'],
  ],
  [
    'a small one unused for long before a large one used lately',
    [image('a', ['r:1'], null, 1000), image('b', ['r:2'], null, 100)],
    [pulled('a', 'r:1', 98), pulled('b', 'r:2', 1)],
    'pulled',
    ['r:2', 'r:1'],
  ],
  [
    'one that was used after a clock stepped back, last',
    [image('a', ['r:1'], null, 10), image('b', ['r:2'], null, 10)],
    [pulled('a', 'r:1', 500), pulled('b', 'r:2', 99)],
    'pulled',
    ['r:2', 'r:1'],
  ],
  ['an image that lost its tag', [image('a', null)], [pulled('a', 'r:1')], 'pulled', ['a']],
  ['a digest that lost its tag', [image('a', [], ['r@d', 's@d'])], [pulled('a', 'r:1')], 'pulled', ['r@d']],
  ['not by digests of others', [image('a', null, ['s@d'])], [pulled('a', 'r:1')], 'pulled', []],
  ['not digests that go with a tag', [image('a', ['r:1'], ['r@d'])], [pulled('a', 'r:1')], 'pulled', ['r:1']],
  [
    'what was pulled by digest',
    [image('a', null, ['nginx@d', 's@d'])],
    [pulled('a', 'docker.io/library/nginx@d')],
    'pulled',
    ['nginx@d'],
  ],
  ['all names, if all are collected', [image('a', ['<none>:<none>'], ['r@d', 's@d'])], [], 'all', ['r@d', 's@d']],
  ['a tag that moved to another image stays there', [image('b', ['r:1'])], [pulled('a', 'r:1')], 'pulled', []],
  [
    'a name of Docker Hub',
    [image('a', ['nginx:1'])],
    [pulled('a', 'docker.io/library/nginx:1')],
    'pulled',
    ['nginx:1'],
  ],
  ['nothing, if none are collected', [image('a', ['r:1'])], [pulled('a', 'r:1')], 'none', []],
];
for (const [name, images, record, policy, expected] of cases) {
  t.test(`collects ${name}`, (t) => {
    const recorded = (image: string) => record.filter(({ id }) => id === image);
    const removals = images.flatMap((each) => removalsOf(each, recorded(each.Id), { policy, nowMs: 100 }));
    t.same(
      inOrder(removals).map(({ name }) => name),
      expected,
    );
    t.end();
  });
}

/** An engine that has images alone. `listed` delays its list, which is that of the request. */
class ImagesOfEngine implements Transport {
  readonly present = new Map<string, string>();
  listed: Promise<void> = Promise.resolve();
  inUse: string[] = [];
  idOf = (name: string): string => name;

  async call({ method, path: versioned, onElement }: Call): Promise<Reply> {
    const path = versioned.replace(/^\/v[\d.]+/, '');
    if (path === '/version') return this.#reply(200, { Version: '20.10', ApiVersion: '1.41', MinAPIVersion: '1.12' });
    if (path.startsWith('/containers/json')) {
      const list = this.inUse.map((ImageID) => ({ ImageID }));
      return this.#reply(200, list);
    }
    if (path === '/images/json') {
      const list = [...this.present].map(([name, Id]) => ({ Id, RepoTags: [name], RepoDigests: null }));
      await this.listed;
      for (const each of list) onElement?.(Buffer.from(JSON.stringify(each)));
      return this.#reply(200, []);
    }
    const name = /^\/images\/(.+?)(?:\/json)?$/.exec(path)?.[1] ?? '';
    const id = this.present.get(name);
    if (id === undefined) return this.#reply(404, { message: 'no such image' });
    if (method === 'DELETE') this.present.delete(name);
    return this.#reply(200, method === 'DELETE' ? [] : { Id: id });
  }

  open({ path }: Call) {
    const name = decodeURIComponent(path.slice(path.indexOf('=') + 1));
    this.present.set(name, `sha256:${this.idOf(name)}`);
    return Promise.resolve({ status: 200, headers: {}, stream: Readable.from([]) });
  }

  close(): void {}

  #reply = (status: number, body: unknown): Reply => ({ status, headers: {}, body: Buffer.from(JSON.stringify(body)) });
}

/** Images whose proofs of access the collector forgot. */
const forgotten: string[] = [];

const collectorOf = async (
  t: Test,
  docker: Transport,
  wanted: () => string[] = () => [],
  nowMs = () => 0,
  policy: ImagePolicy = 'pulled',
  stateDir = temporaryFolder(t),
) =>
  createImageCollector({
    access: { images: () => new Set(['sha256:never']), forget: (id) => void forgotten.push(id) },
    engine: createEngine(docker),
    stateDir,
    policy,
    wanted,
    nowMs,
    metrics: { imageRemoved: () => undefined },
    disk: quietDisk(),
    log: createLog('test', 'silent'),
  });
const { signal } = new AbortController();

t.test('proofs of an image that is gone are forgotten also where no image is removed', async (t) => {
  const docker = new ImagesOfEngine();
  const nothing = (): string[] => [];
  const collector = await collectorOf(t, docker, nothing, () => 99, 'none');
  await collector.recording.pull('old:1', signal);
  forgotten.length = 0;
  await collector.collectUnused(1);
  t.same(forgotten, ['sha256:never']);
  t.same([...docker.present.keys()], ['old:1']);
});

t.test('images that were unused for long are removed, however much room there is', async (t) => {
  const docker = new ImagesOfEngine();
  let nowMs = 0;
  let wanted: string[] = [];
  const collector = await collectorOf(
    t,
    docker,
    () => wanted,
    () => nowMs,
  );
  docker.present.set('foreign:1', 'sha256:foreign');
  forgotten.length = 0;
  for (const reference of ['old:1', 'run:1', 'wanted:1']) await collector.recording.pull(reference, signal);
  docker.inUse = ['sha256:run:1'];
  wanted = ['wanted:1'];
  nowMs = 9;
  await collector.recording.pull('new:1', signal);
  await collector.collectUnused(11);
  t.equal(docker.present.size, 5, 'none is that old');
  t.same(forgotten, ['sha256:never'], 'what was proved of an image that is gone');
  nowMs = 12;
  await collector.collectUnused(11);
  t.same([...docker.present.keys()], ['foreign:1', 'run:1', 'wanted:1', 'new:1']);
  docker.inUse = [];
  wanted = [];
  nowMs = 20;
  await collector.collectUnused(11);
  t.same([...docker.present.keys()], ['foreign:1', 'run:1', 'wanted:1'], 'its time counts from its last use');
  nowMs = 23;
  await collector.collectUnused(11);
  t.same([...docker.present.keys()], ['foreign:1']);
  await collector.flush();
});

t.test('an image that is wanted while others are removed stays', async (t) => {
  const docker = new ImagesOfEngine();
  let wanted: string[] = [];
  const collector = await collectorOf(t, docker, () => wanted);
  for (const reference of ['a:1', 'b:1', 'c:1']) await collector.recording.pull(reference, signal);
  await collector.collect(() => {
    if (!docker.present.has('a:1')) wanted = ['b:1'];
    return Promise.resolve(true);
  });
  t.same([...docker.present.keys()], ['b:1']);
  await collector.flush();
});

t.test('an image that is pulled while the engine lists its images is collected later', async (t) => {
  const docker = new ImagesOfEngine();
  const collector = await collectorOf(t, docker);
  let answer = (): void => undefined;
  docker.listed = new Promise((resolve) => (answer = resolve));
  const collecting = collector.collect(() => Promise.resolve(true));
  await collector.recording.pull('r:1', signal);
  answer();
  await collecting;
  t.same([...docker.present.keys()], ['r:1'], 'it was not on the list');
  await collector.collect(() => Promise.resolve(true));
  t.same([...docker.present.keys()], []);
  await collector.flush();
});

t.test('of many names of one image, the oldest that no container needs go', async (t) => {
  const docker = new ImagesOfEngine();
  docker.idOf = (name) => name.replace(/^.*\//, '');
  docker.present.set('foreign/one', 'sha256:one');
  const collector = await collectorOf(t, docker, () => ['r0/one', 'r2/one']);
  const names = Array.from({ length: limits.namesOfImage + 4 }, (_, index) => `r${index}/one`);
  await collector.recording.pull('r/other', signal);
  for (const name of names.slice(0, 4)) await collector.recording.pull(name, signal);
  docker.present.set('r3/one', 'sha256:moved');
  for (const name of names.slice(4)) await collector.recording.pull(name, signal);
  t.same([...docker.present.keys()], ['foreign/one', 'r/other', ...names.filter((name) => name !== 'r1/one')]);
  await collector.recording.pull('r4/one', signal);
  await collector.recording.pull('more/one', signal);
  t.notOk(docker.present.has('r5/one'), 'the oldest, not the one that was pulled again');
  t.ok(docker.present.has('r4/one'));
  await collector.flush();
});

t.test('of a full record, the names that were unused the longest go', async (t) => {
  const docker = new ImagesOfEngine();
  const stateDir = temporaryFolder(t);
  const images = Array.from({ length: 5000 }, (_, index) => pulled(`sha256:r${index}`, `r${index}`));
  for (const { id, reference } of images) docker.present.set(reference, id);
  writeFileSync(join(stateDir, 'images.json'), JSON.stringify({ v: 1, images }));
  const collector = await collectorOf(t, docker, () => ['r0'], undefined, undefined, stateDir);
  await collector.recording.create('container', { Image: 'sha256:r1', Labels: {}, HostConfig: {} });
  for (const name of ['a', 'b']) await collector.recording.pull(name, signal);
  t.same(
    ['r0', 'r1', 'r2', 'r3', 'r4', 'a', 'b'].filter((name) => docker.present.has(name)),
    ['r0', 'r1', 'r4', 'a', 'b'],
  );
  await collector.flush();
});

t.test('no name goes where none are collected', async (t) => {
  const docker = new ImagesOfEngine();
  docker.idOf = () => 'one';
  const collector = await collectorOf(t, docker, undefined, undefined, 'none');
  for (let index = 0; index < 2 * limits.namesOfImage; index++) await collector.recording.pull(`r${index}`, signal);
  t.equal(docker.present.size, 2 * limits.namesOfImage);
  await collector.flush();
});
