import t from 'tap';
import { bytesText } from '../../../cli/terminal/quantities.ts';
import { agoText, imageText, tableOf } from '../../../cli/terminal/table.ts';

t.test('columns are as wide as their widest cell, and no line ends with spaces', (t) => {
  t.equal(
    tableOf(
      ['name', 'status'],
      [
        ['web', 'running'],
        ['database', ''],
      ],
      'none',
    ),
    'NAME      STATUS\nweb       running\ndatabase',
  );
  t.equal(tableOf(['name'], [], 'There are none.'), 'There are none.');
  t.end();
});

t.test('sizes, times and images as people read them', (t) => {
  const sizes = [0, 1023, 1024, 1536, 64 * 1024 ** 2, 150.5 * 1024 ** 2, 3 * 1024 ** 5].map(bytesText);
  t.same(sizes, ['0 B', '1023 B', '1 KiB', '1.5 KiB', '64 MiB', '151 MiB', '3072 TiB']);
  const now = Date.parse('2026-11-24T12:00:00Z');
  const ago = (seconds: number): string => agoText(new Date(now - seconds * 1000).toISOString(), now);
  t.same([-5, 0, 59, 60, 3_599, 3_600, 86_399, 200_000].map(ago), ['0s', '0s', '59s', '1m', '59m', '1h', '23h', '2d']);
  t.equal(agoText(null, now), 'damaged');
  const image = { registry: 'docker.io', repository: 'library/nginx', tag: '1.27', digest: null };
  t.equal(imageText(image), 'docker.io/library/nginx:1.27');
  t.equal(imageText({ ...image, tag: null, digest: 'sha256:00' }), 'docker.io/library/nginx@sha256:00');
  t.equal(imageText({ ...image, repository: null }), '-');
  t.end();
});
