import { Readable } from 'node:stream';
import t from 'tap';
import { createEngine } from '../../../host-agent/docker/engine.ts';
import type { Call, Reply, Transport } from '../../../host-agent/docker/transport.ts';
import {
  createImageCollector,
  familiar,
  removalsOf,
  type ImagePolicy,
  type PulledImage,
} from '../../../host-agent/images/collector.ts';
import { createLog } from '../../../lib/log.ts';
import { temporaryFolder } from '../../support/folder.ts';
import { quietDisk } from '../support/disk.ts';

const image = (Id: string, RepoTags: string[] | null, RepoDigests: string[] | null = null) => ({
  Id,
  RepoTags,
  RepoDigests,
});
const pulled = (id: string, reference: string, usedAtMs = 0): PulledImage => ({ id, reference, usedAtMs });

const cases: readonly [
  name: string,
  images: ReturnType<typeof image>[],
  pulled: PulledImage[],
  kept: string[],
  policy: ImagePolicy,
  expected: string[],
][] = [
  ['an unused image that the agent pulled', [image('a', ['r:1'])], [pulled('a', 'r:1')], [], 'pulled', ['r:1']],
  ['not an image in use or wanted', [image('a', ['r:1'])], [pulled('a', 'r:1')], ['a'], 'pulled', []],
  ['not an image of others', [image('a', ['r:1'])], [], [], 'pulled', []],
  ['not an untagged image of others', [image('a', null)], [], [], 'pulled', []],
  ['any unused image, if all are collected', [image('a', ['r:1', 's:1'])], [], [], 'all', ['r:1', 's:1']],
  ['not the tags of others', [image('a', ['r:1', 's:1'])], [pulled('a', 'r:1')], [], 'pulled', ['r:1']],
  [
    'the longest unused first',
    [image('a', ['r:1']), image('b', ['r:2'])],
    [pulled('a', 'r:1', 2), pulled('b', 'r:2', 1)],
    [],
    'pulled',
    ['r:2', 'r:1'],
  ],
  ['an image that lost its tag', [image('a', null)], [pulled('a', 'r:1')], [], 'pulled', ['a']],
  ['not if others have it by digest', [image('a', [], ['r@d', 's@d'])], [pulled('a', 'r:1')], [], 'pulled', []],
  ['a tag that moved to another image stays there', [image('b', ['r:1'])], [pulled('a', 'r:1')], [], 'pulled', []],
  [
    'a name of Docker Hub',
    [image('a', ['nginx:1'])],
    [pulled('a', 'docker.io/library/nginx:1')],
    [],
    'pulled',
    ['nginx:1'],
  ],
  ['nothing, if none are collected', [image('a', ['r:1'])], [pulled('a', 'r:1')], [], 'none', []],
];
for (const [name, images, record, kept, policy, expected] of cases) {
  t.test(`collects ${name}`, (t) => {
    t.same(
      removalsOf(images, record, new Set(kept), policy).map(({ name }) => name),
      expected,
    );
    t.end();
  });
}

t.test('references are compared in the form that the engine shows', (t) => {
  t.equal(familiar('docker.io/library/nginx:1'), 'nginx:1');
  t.equal(familiar('docker.io/acme/web:1'), 'acme/web:1');
  t.equal(familiar('127.0.0.1:5000/library/web:1'), '127.0.0.1:5000/library/web:1');
  t.end();
});

/** An engine that has images alone. `listed` delays its list, which is that of the request. */
class ImagesOfEngine implements Transport {
  readonly present = new Map<string, string>();
  listed: Promise<void> = Promise.resolve();

  async call({ method, path: versioned }: Call): Promise<Reply> {
    const path = versioned.replace(/^\/v[\d.]+/, '');
    if (path === '/version') return this.#reply(200, { Version: '20.10', ApiVersion: '1.41', MinAPIVersion: '1.12' });
    if (path.startsWith('/containers/json')) return this.#reply(200, []);
    if (path === '/images/json') {
      const list = [...this.present].map(([name, Id]) => ({ Id, RepoTags: [name], RepoDigests: null }));
      await this.listed;
      return this.#reply(200, list);
    }
    const name = /^\/images\/(.+?)(?:\/json)?$/.exec(path)?.[1] ?? '';
    const id = this.present.get(name);
    if (id === undefined) return this.#reply(404, { message: 'no such image' });
    if (method === 'DELETE') this.present.delete(name);
    return this.#reply(200, method === 'DELETE' ? [] : { Id: id });
  }

  open({ path }: Call) {
    const name = decodeURIComponent(path.slice(path.indexOf('=') + 1));
    this.present.set(name, `sha256:${name}`);
    return Promise.resolve({ status: 200, headers: {}, stream: Readable.from([]) });
  }

  close(): void {}

  #reply = (status: number, body: unknown): Reply => ({ status, headers: {}, body: Buffer.from(JSON.stringify(body)) });
}

t.test('an image that is pulled while the engine lists its images is collected later', async (t) => {
  const docker = new ImagesOfEngine();
  const collector = await createImageCollector({
    engine: createEngine(docker),
    stateDir: temporaryFolder(t),
    policy: 'pulled',
    wanted: () => [],
    nowMs: () => 0,
    metrics: { imageRemoved: () => undefined },
    disk: quietDisk(),
    log: createLog('test', 'silent'),
  });
  let answer = (): void => undefined;
  docker.listed = new Promise((resolve) => (answer = resolve));
  const collecting = collector.collect(() => Promise.resolve(true));
  await collector.recording.pull('r:1', new AbortController().signal);
  answer();
  await collecting;
  t.same([...docker.present.keys()], ['r:1'], 'it was not on the list');
  await collector.collect(() => Promise.resolve(true));
  t.same([...docker.present.keys()], []);
  await collector.flush();
});
