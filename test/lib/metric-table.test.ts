import { Counter, Gauge, Histogram, Registry } from 'prom-client';
import t from 'tap';
import {
  counter,
  describe,
  gauge,
  histogram,
  label,
  readAtScrapes,
  reading,
  record,
  upDownCounter,
} from '../../lib/metric-table.ts';

const help = 'Test.';
const prefix = 'test_';

t.test('a histogram is exposed as that of prom-client', async (t) => {
  const [ours, theirs] = [new Registry(), new Registry()];
  const buckets = [0.001, 0.5, 2];
  const { took, whole } = record(ours, prefix, {
    took: histogram('seconds', { help, labels: [label('route')], buckets }),
    whole: histogram('whole_seconds', { help, buckets }),
  });
  const library = new Histogram({ name: 'test_seconds', help, labelNames: ['route'], buckets, registers: [theirs] });
  const libraryWhole = new Histogram({ name: 'test_whole_seconds', help, buckets, registers: [theirs] });
  t.equal(await ours.metrics(), await theirs.metrics(), 'without values');

  const observed: [route: string, value: number][] = [
    ['a', 0],
    ['a', 0.001],
    ['b', 0.0011],
    ['a', 2],
    ['a', 2.1],
    ['a', 100],
  ];
  for (let scrape = 0; scrape < 3; scrape++) {
    for (const [route, value] of observed) {
      took(route, value);
      library.observe({ route }, value);
      whole(value);
      libraryWhole.observe(value);
    }
    t.equal(await ours.metrics(), await theirs.metrics());
  }
});

t.test('counters and gauges are exposed as those of prom-client', async (t) => {
  const [ours, theirs] = [new Registry(), new Registry()];
  const recorders = record(ours, prefix, {
    asked: counter('asked_total', { help, labels: [label('route'), label<number>('status')] }),
    all: counter('all_total', { help }),
    known: counter('known_total', { help, labels: [label('result', 'hit', 'miss')] }),
    room: gauge('room', { help, labels: [label<number>('partition')] }),
    open: upDownCounter('open', { help }),
  });
  const registers = [theirs];
  const asked = new Counter({ name: 'test_asked_total', help, labelNames: ['route', 'status'], registers });
  const all = new Counter({ name: 'test_all_total', help, registers });
  const known = new Counter({ name: 'test_known_total', help, labelNames: ['result'], registers });
  for (const result of ['hit', 'miss']) known.inc({ result }, 0);
  const room = new Gauge({ name: 'test_room', help, labelNames: ['partition'], registers });
  const open = new Gauge({ name: 'test_open', help, registers });
  t.equal(await ours.metrics(), await theirs.metrics(), 'nothing recorded: what is known beforehand is 0');

  for (let scrape = 1; scrape <= 3; scrape++) {
    recorders.asked('a', 200);
    recorders.asked('a', 200, 2);
    recorders.asked('b', 404);
    asked.inc({ route: 'a', status: 200 }, 3);
    asked.inc({ route: 'b', status: 404 });
    recorders.all();
    all.inc();
    recorders.known('miss');
    known.inc({ result: 'miss' });
    recorders.room(7, scrape);
    room.set({ partition: 7 }, scrape);
    recorders.open(2);
    recorders.open(-1);
    open.inc();
    t.equal(await ours.metrics(), await theirs.metrics());
  }
});

t.test('a row with a reader has what it reads at each scrape, and nothing of the scrape before', async (t) => {
  const registry = new Registry();
  const from = { hosts: new Map([['up', 2]]), seconds: 1.5, free: undefined as number | undefined };
  const read = reading<typeof from>();
  const table = {
    hosts: read('gauge', 'hosts', { help, labels: [label('state')], read: ({ hosts }) => [...hosts] }),
    cpu: read('counter', 'cpu_seconds_total', { help, read: ({ seconds }) => seconds }),
    free: read('gauge', 'ports_free', { help, read: ({ free }) => free }),
  };
  readAtScrapes(registry, prefix, table, from);
  const samples = async (): Promise<string[]> =>
    (await registry.metrics()).split('\n').filter((line) => line !== '' && !line.startsWith('#'));
  t.same(await samples(), ['test_hosts{state="up"} 2', 'test_cpu_seconds_total 1.5'], 'undefined: no sample');
  t.same(await samples(), ['test_hosts{state="up"} 2', 'test_cpu_seconds_total 1.5'], 'a scrape changes nothing');
  from.hosts = new Map([['lost', 1]]);
  from.seconds = 4;
  from.free = 0;
  t.same(await samples(), ['test_hosts{state="lost"} 1', 'test_cpu_seconds_total 4', 'test_ports_free 0']);
  from.free = undefined;
  t.same(await samples(), ['test_hosts{state="lost"} 1', 'test_cpu_seconds_total 4'], 'nor any more');
  t.same(describe(prefix, table), [
    { name: 'test_cpu_seconds_total', type: 'counter', labels: [], help, watch: '' },
    { name: 'test_hosts', type: 'gauge', labels: ['state'], help, watch: '' },
    { name: 'test_ports_free', type: 'gauge', labels: [], help, watch: '' },
  ]);
});
