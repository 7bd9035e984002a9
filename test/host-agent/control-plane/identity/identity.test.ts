import t from 'tap';
import { readOnce } from '../../../../host-agent/control-plane/identity/identity.ts';

t.test('each JWT in use is read once', (t) => {
  const decoded: string[] = [];
  const read = readOnce((jwt) => {
    decoded.push(jwt);
    return { said: jwt };
  }, 2);
  for (const jwt of ['a', 'b', 'a', 'b', 'a']) t.same(read(jwt), { said: jwt });
  t.same(decoded, ['a', 'b']);
  t.same(read('c'), { said: 'c' }, 'a new one');
  t.same(read('c'), { said: 'c' });
  t.same(decoded, ['a', 'b', 'c']);
  t.end();
});
