import t from 'tap';
import { imagesOf } from '../../../host-agent/desired/wanted.ts';
import type { Declared } from '../../../host-agent/desired/wanted.ts';
import { container, reference, wanted } from '../support/decisions.ts';

const update = { since: 3, previous: { container: container({ tag: '0' }), spec: 's' } };

for (const [name, given, expected] of [
  ['a running container', wanted('running'), [reference]],
  ['a stopped container, which may start again', wanted('stopped'), [reference]],
  [
    'a container that is updated',
    { ...(wanted('running') as Declared), update },
    [reference, 'docker.io/longshore/web:0'],
  ],
  ['a container in removal', wanted('removed'), []],
  ['a container without a repository', wanted('running', { repository: null }), []],
  ['an orphan', { want: 'nothing' }, []],
] as const) {
  t.test(`${name} needs ${expected.length} images`, (t) => {
    t.same(imagesOf(given), expected);
    t.end();
  });
}
