import t from 'tap';
import { parseCapabilities } from '../../../host-agent/spec/confinement.ts';

t.test('an operator names the capabilities that containers may have', (t) => {
  t.same(parseCapabilities('none'), []);
  t.same(parseCapabilities('chown, CAP_KILL,KILL'), ['CHOWN', 'KILL']);
  for (const text of ['NET_RAW', 'CHOWN,SYS_ADMIN', 'ALL', ',', 'CHOWN,none'])
    t.equal(parseCapabilities(text), undefined, text);
  t.end();
});
