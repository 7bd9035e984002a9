import t from 'tap';
import { capacityOf } from '../../../host-agent/workload/capacity.ts';

t.test('settings count before what the machine has', (t) => {
  const given = { CAPACITY_CPU_MILLIS: 0, CAPACITY_MEM_BYTES: 0, CAPACITY_CONTAINERS: 500, CPU_OVERCOMMIT: 4 };
  const machine = { cores: 2, memBytes: 1000 };
  t.same(capacityOf(given, machine), { cpu_millis: 8000, mem_bytes: 900, containers: 500 });
  t.same(capacityOf({ ...given, CAPACITY_CPU_MILLIS: 1500, CAPACITY_MEM_BYTES: 77 }, machine), {
    cpu_millis: 1500,
    mem_bytes: 77,
    containers: 500,
  });
  t.end();
});
