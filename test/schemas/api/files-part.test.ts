/** The part `files` of a container's document: its checks, and what is stored of it. */
import { createHash } from 'node:crypto';
import t from 'tap';
import { containerFields } from '../../../schemas/api/fields/container.ts';
import { withoutContents, type FileUses } from '../../../schemas/api/fields/files-part.ts';
import { limits } from '../../../schemas/limits.ts';

const { files: kind } = containerFields;
const faultsOf = (value: unknown): string[] => {
  const faults: string[] = [];
  kind.parse(value, (message, ...below) => void faults.push(`${below.join(' ')} ${message}`));
  return faults;
};
const parsed = (value: unknown): FileUses | undefined => kind.parse(value, () => undefined);
const sha256 = (text: string): string => createHash('sha256').update(text).digest('hex');

t.test('the stored form has the hash, the size and the mode, in one order', (t) => {
  const given = parsed({ '/b': { content: 'é' }, '/a/b': { content: '', mode: 0o400 } });
  t.same(given, {
    '/a/b': { sha256: '', bytes: 0, mode: 0o400, content: '' },
    '/b': { sha256: '', bytes: 2, mode: 0o444, content: 'é' },
  });
  const { files, contents } = withoutContents(given!, sha256);
  t.same(files, {
    '/a/b': { sha256: sha256(''), bytes: 0, mode: 0o400 },
    '/b': { sha256: sha256('é'), bytes: 2, mode: 0o444 },
  });
  t.same(
    [...contents],
    [
      [sha256(''), ''],
      [sha256('é'), 'é'],
    ],
  );
  t.same(Object.keys(given ?? {}), ['/a/b', '/b']);
  t.same(kind.canonical(files), [
    ['/a/b', sha256(''), 0o400],
    ['/b', sha256('é'), 0o444],
  ]);
  t.ok(kind.isStored(files));
  t.notOk(kind.isStored({ '/a': { content: 'x' } }));
  t.end();
});

t.test('refusals, each at its place', (t) => {
  const most = 'x'.repeat(limits.fileBytes);
  const many = (count: number, content: string) =>
    Object.fromEntries(Array.from({ length: count }, (_, index) => [`/f${index}`, { content }]));
  for (const [value, fault] of [
    ['x', / must be a map of files/],
    [{ a: { content: '' } }, /^a must be an absolute path/],
    [{ '/': { content: '' } }, /^\/ must name a file/],
    [{ '/a/../b': { content: '' } }, /^\/a\/\.\.\/b must name a file/],
    [{ '/a//b': { content: '' } }, /^\/a\/\/b must name a file/],
    [{ '/proc/a': { content: '' } }, /must not be below \/proc/],
    [{ '/a': { content: '' }, '/a/b': { content: '' } }, /^\/a\/b is below another file/],
    [{ '/a': 'x' }, /^\/a must be an object with content/],
    [{ '/a': { content: 1 } }, /^\/a content must be a string/],
    [{ '/a': { from: './x' } }, /^\/a from names a file where the document is written/],
    [{ '/a': { content: '', uid: 0 } }, /^\/a uid is no setting/],
    [{ '/a': { content: '', mode: '0644' } }, /^\/a mode must be an integer/],
    [{ '/a': { content: '', mode: 0o1000 } }, /^\/a mode must be an integer/],
    [{ '/a': { content: `${most}x` } }, /^\/a content must be at most 65536 bytes/],
    [{ '/a': { content: '\ud800' } }, /^\/a content must be valid Unicode/],
    [many(limits.files + 1, ''), /must be at most 64 files/],
    [many(17, most), /must be at most 1048576 bytes in all/],
  ] as const) {
    const [first, ...others] = faultsOf(value);
    t.match(first, fault, JSON.stringify(value).slice(0, 60));
    t.same(others, []);
  }
  t.ok(parsed(many(16, most)));
  t.end();
});
