import t from 'tap';
import { compareApi } from '../../../../host-agent/docker/calls/client.ts';

t.test('API versions compare by their numbers', (t) => {
  t.ok(compareApi('1.9', '1.41') < 0);
  t.ok(compareApi('1.51', '1.41') > 0);
  t.equal(compareApi('1.41', '1.41'), 0);
  t.end();
});
