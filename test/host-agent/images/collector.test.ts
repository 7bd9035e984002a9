import t from 'tap';
import { familiar, removalsOf, type ImagePolicy, type PulledImage } from '../../../host-agent/images/collector.ts';

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
