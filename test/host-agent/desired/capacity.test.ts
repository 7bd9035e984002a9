import t from 'tap';
import { capacityOf, roomOf } from '../../../host-agent/desired/capacity.ts';
import { decoder } from '../../../lib/decode.ts';
import { limits } from '../../../schemas/limits.ts';
import { Beat } from '../../../schemas/wire/host.ts';

t.test('settings count before what the machine has', (t) => {
  const given = {
    CAPACITY_CPU_MILLIS: undefined,
    CAPACITY_MEM_BYTES: undefined,
    CAPACITY_CONTAINERS: 500,
    CPU_OVERCOMMIT: 4,
  };
  const machine = { cores: 2, memBytes: 1000 };
  t.same(capacityOf(given, machine), { cpu_millis: 8000, mem_bytes: 900, containers: 500 });
  t.same(capacityOf({ ...given, CAPACITY_CPU_MILLIS: 1500, CAPACITY_MEM_BYTES: 77 }, machine), {
    cpu_millis: 1500,
    mem_bytes: 77,
    containers: 500,
  });
  t.end();
});

t.test('room: in steps, so that an idle host says the same again, and silent on what is unknown', (t) => {
  const step = limits.roomDiskStepBytes;
  t.same(roomOf(7, 3 * step), { ports: 7, disk_bytes: 3 * step });
  t.same(roomOf(0, 4 * step - 1), { ports: 0, disk_bytes: 3 * step });
  t.same(roomOf(0, step - 1), { ports: 0, disk_bytes: 0 });
  t.same(roomOf(null, null), {});
  t.end();
});

t.test('a heartbeat with room, and with more of it than this release knows', (t) => {
  const decode = decoder(Beat);
  const used = { cpu_millis: 0, mem_bytes: 0, containers: 0 };
  const beat = { v: 1, session: 1, used, engine: '', orphans_held: 0, volumes_left: 0, faults: [] };
  const read = (more: object) => decode(Buffer.from(JSON.stringify({ ...beat, ...more }))).room;
  t.same(read({ room: {} }), {});
  t.match(read({ room: { ports: 3, gpus: 1 } }), { ports: 3 });
  t.throws(() => read({ room: { ports: -1 } }));
  t.end();
});
