/** Values that Compose and Docker take, and those that they refuse. */
import t, { type Test } from 'tap';
import {
  booleanOf,
  commandOf,
  countOf,
  cpusText,
  memoryText,
  pairsOf,
  portsOf,
  secondsOf,
  signalOf,
} from '../../../../cli/apply/compose/values.ts';

type Rows<T> = readonly (readonly [value: unknown, result: T | undefined])[];

function check<T>(t: Test, read: (value: unknown) => T | undefined, rows: Rows<T>): void {
  for (const [value, result] of rows) t.same(read(value), result, JSON.stringify(value));
  t.end();
}

t.test('CPUs', (t) =>
  check(t, cpusText, [
    ['0.50', '0.5'],
    [2, '2.0'],
    ['.25', '0.25'],
    ['2.', '2.0'],
    ['1e-1', '0.1'],
    ['1.23456', '1.235'],
    ['0.0001', '0.001'],
    ['two', undefined],
    ['', undefined],
    ['.', undefined],
    ['-1', undefined],
    [true, undefined],
    [0, '0.0'],
  ]),
);

t.test('sizes: letters of any case, one blank before the unit, parts of a byte cut off', (t) =>
  check(t, memoryText, [
    ['64mb', '64m'],
    ['1G', '1g'],
    ['512k', '512k'],
    ['8b', '8b'],
    [67108864, '67108864'],
    ['1.5g', '1536m'],
    ['0.5G', '512m'],
    ['.5g', '512m'],
    ['2.g', '2g'],
    ['1GiB', '1g'],
    ['512MiB', '512m'],
    ['64 mb', '64m'],
    ['1t', '1024g'],
    ['32Kib', '32k'],
    ['32KIB', '32k'],
    ['32Tb', '32768g'],
    ['32P', '33554432g'],
    ['32.3', '32'],
    ['32.3 mb', '33869004'],
    ['0.3MB', '314572'],
    ['2b', '2b'],
    ['1024kb', '1024k'],
    ['1gb', '1g'],
    ['much', undefined],
    ['', undefined],
    ['.', undefined],
    ['-32', undefined],
    [' 32 ', undefined],
    ['32m b', undefined],
    ['32bm', undefined],
    [true, undefined],
  ]),
);

t.test('lengths of time, in seconds that are rounded up', (t) =>
  check(t, secondsOf, [
    ['1m30s', 90],
    ['1500ms', 2],
    ['0s', 0],
    ['0', 0],
    [0, 0],
    ['2h', 7200],
    ['1.5s', 2],
    ['1.5m', 90],
    ['2d', 172_800],
    ['1w', 604_800],
    ['0.1s', 1],
    ['10ms', 1],
    ['40s', 40],
    ['1h5m30s20ms', 3931],
    ['+5s', 5],
    ['1h0m4.000000001s', 3605],
    ['96h63s', 345_663],
    ['2d3s96ns', 172_804],
    ['1w2d3s3µs96ns', 777_604],
    ['1w2d3s3μs96ns', 777_604],
    ['10', undefined],
    ['s', undefined],
    ['.s', undefined],
    ['-5s', undefined],
    ['1 s', undefined],
    ['', undefined],
    [true, undefined],
  ]),
);

t.test('the command of a check', (t) =>
  check(t, commandOf, [
    ['curl -f localhost', ['/bin/sh', '-c', 'curl -f localhost']],
    [
      ['CMD-SHELL', 'exit 0'],
      ['/bin/sh', '-c', 'exit 0'],
    ],
    [
      ['CMD-SHELL', 'echo "$0"', 'a'],
      ['/bin/sh', '-c', 'echo "$0"', 'a'],
    ],
    [
      ['CMD', 'curl', '-f', 80],
      ['curl', '-f', '80'],
    ],
    [['curl', '-f'], undefined],
    [['CMD'], undefined],
    [7, undefined],
  ]),
);

t.test('ports', (t) => {
  const rows = [
    [80, [80]],
    ['80/', [80]],
    ['80/udp', ['80/udp']],
    ['53:53/UDP', ['53/udp'], '53'],
    ['8080:80', [80], '8080'],
    ['9000-9100:80', [80], '9000-9100'],
    ['127.0.0.1:8080:80', [80], '8080', '127.0.0.1'],
    ['127.0.0.1::80', [80], undefined, '127.0.0.1'],
    ['[::1]:8080:80', [80], '8080', '[::1]'],
    ['::1:8080:80', [80], '8080', '::1'],
    ['[2001:4860:0:2001::68]::333', [333], undefined, '[2001:4860:0:2001::68]'],
    ['::::80', [80], undefined, '::'],
    ['9090-9091:80-81/tcp', [80, 81], '9090-9091'],
    ['0.0.0.0:1234-1235:3333-3334/tcp', [3333, 3334], '1234-1235', '0.0.0.0'],
    [{ target: 53, protocol: 'udp', published: '53' }, ['53/udp'], '53'],
    [{ target: '80', host_ip: '127.0.0.1' }, [80], undefined, '127.0.0.1'],
    [{ target: 80 }, [80]],
  ] as const;
  for (const [value, ports, published, address] of rows)
    t.same(
      portsOf(value),
      {
        ports,
        ...(published === undefined ? {} : { published }),
        ...(address === undefined ? {} : { address }),
      },
      JSON.stringify(value),
    );
  for (const value of [
    ...['80-70', '1-60000', 'http', '', '8080:', '/udp', '80/sctp', '127.0.1:8080:80', 'localhost:8080:80'],
    ...['8000-8001:80-82', 'x:80', {}, true],
  ])
    t.equal(portsOf(value), undefined, JSON.stringify(value));
  t.end();
});

t.test('signals', (t) =>
  check(t, signalOf, [
    ['SIGINT', 'SIGINT'],
    ['INT', 'SIGINT'],
    ['sigint', 'SIGINT'],
    [2, 'SIGINT'],
    ['9', 'SIGKILL'],
    ['SIGRTMIN+3', 'SIGRTMIN+3'],
    ['rtmin+3', 'SIGRTMIN+3'],
    [37, 'SIGRTMIN+3'],
    ['SIGNOT', undefined],
    [64, undefined],
  ]),
);

t.test('numbers and booleans, also in quotes', (t) => {
  t.same(['3', 3, 0, '', 'x', 1.5, -1].map(countOf), [3, 3, 0, undefined, undefined, undefined, undefined]);
  t.same([true, 'true', 'Yes', 'y', 'ON'].map(booleanOf), [true, true, true, true, true]);
  t.same([false, 'FALSE', 'no', 'n', 'off'].map(booleanOf), [false, false, false, false, false]);
  t.same(['', 'maybe', 1, null, {}].map(booleanOf), [undefined, undefined, undefined, undefined, undefined]);
  t.end();
});

t.test('lists and maps of NAME=value', (t) =>
  check(t, pairsOf, [
    [
      ['A=1', 'B', 'C=', 'D=x=y', 'E=%'],
      [
        ['A', '1'],
        ['B', null],
        ['C', ''],
        ['D', 'x=y'],
        ['E', '%'],
      ],
    ],
    [
      { A: 1, B: null },
      [
        ['A', 1],
        ['B', null],
      ],
    ],
    // "- A: 1" in place of "- A=1".
    [[{ A: 1 }], undefined],
    ['A=1', undefined],
  ]),
);
