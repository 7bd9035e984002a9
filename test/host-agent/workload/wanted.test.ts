import t from 'tap';
import { imageOf } from '../../../host-agent/workload/wanted.ts';
import { reference, wanted } from '../support/decisions.ts';

for (const [name, given, expected] of [
  ['a running container', wanted('running'), reference],
  ['a stopped container, which may start again', wanted('stopped'), reference],
  ['a container in removal', wanted('removed'), undefined],
  ['a container without a repository', wanted('running', { repository: null }), undefined],
  ['an orphan', { want: 'nothing' }, undefined],
] as const) {
  t.test(`${name} needs ${expected === undefined ? 'no image' : 'its image'}`, (t) => {
    t.equal(imageOf(given), expected);
    t.end();
  });
}
