import t from 'tap';
import { createFaults, faultKinds } from '../../host-agent/faults.ts';
import { limits } from '../../schemas/limits.ts';
import { quietLog } from '../actors/support.ts';

function create() {
  const logged: string[] = [];
  const log = (event: string, fields?: object) => void logged.push(`${event} ${JSON.stringify(fields)}`);
  return { faults: createFaults({ ...quietLog, error: log, warn: log }), logged: () => logged.splice(0) };
}
const kind = 'disk_pressure';

t.test('a fault is logged when it begins and when it is over, however often it is noticed', (t) => {
  const { faults, logged } = create();
  faults.clear(kind);
  t.same(logged(), []);
  faults.raise(kind, 'full');
  faults.raise(kind, 'fuller');
  t.same(faults.list(), [{ kind, message: 'full' }], 'the first message stays');
  faults.restate(kind, 'fullest');
  t.same(faults.list(), [{ kind, message: 'fullest' }], 'unless it is restated');
  t.same(logged(), [`host_fault_raised ${JSON.stringify({ kind, message: 'full' })}`]);
  faults.clear(kind);
  faults.clear(kind);
  t.same([faults.list(), logged()], [[], [`host_fault_cleared ${JSON.stringify({ kind })}`]]);
  faults.restate(kind, 'again');
  t.equal(logged().length, 1, 'the next one is another');
  t.end();
});

t.test('a heartbeat has a bounded number of faults and of characters', (t) => {
  const { faults } = create();
  for (const each of faultKinds) faults.raise(each, 'x'.repeat(limits.hostFaultChars + 1));
  t.equal(faults.list().length, Math.min(limits.hostFaults, faultKinds.length));
  for (const { message } of faults.list()) t.equal(message.length, limits.hostFaultChars);
  t.end();
});
