/** Lines that engines send during a pull, and what they amount to. */
import t from 'tap';
import type { PullLine } from '../../../host-agent/docker/answers.ts';
import { PullLines, pullLayers } from '../../../host-agent/docker/pull-progress.ts';

/** `a Downloading 3/10` */
const line = (text: string): PullLine => {
  const [id, ...words] = text.split(' ');
  const [current, total] = /^[-.\d]+\/[-.\d]+$/.test(words.at(-1) ?? '')
    ? (words.pop() ?? '').split('/').map(Number)
    : [];
  return {
    ...(id === '-' ? {} : { id }),
    status: words.join(' '),
    progressDetail: current === undefined ? {} : { current, ...(total === undefined ? {} : { total }) },
  };
};

function said(...texts: string[]) {
  const lines = new PullLines();
  const news = texts.map((text) => lines.note(line(text)));
  return { lines, news, progress: lines.progress() };
}

t.test('progress', (t) => {
  const rows: [name: string, lines: string[], expected: [number, number, number | null] | undefined][] = [
    ['none before a layer is named', ['1 Pulling from library/web', '- Digest: sha256:0a'], undefined],
    ['layers without a size', ['a Pulling fs layer', 'b Waiting'], [2, 0, null]],
    ['a layer that is fetched', ['a Pulling fs layer', 'b Waiting', 'a Downloading 3/10'], [2, 3, 10]],
    ['a layer that is checked', ['a Downloading 3/10', 'a Verifying Checksum'], [1, 10, 10]],
    ['one that is unpacked', ['a Downloading 3/10', 'a Download complete', 'a Extracting 1/10'], [1, 10, 10]],
    ['unpacking as containerd tells it', ['a Downloading 3/10', 'a Extracting 5/0'], [1, 10, 10]],
    ['done', ['a Downloading 3/10', 'a Pull complete', 'b Downloading 1/5'], [2, 11, 15]],
    ['a small layer, whose size the engine never says', ['a Pulling fs layer', 'a Download complete'], [1, 0, null]],
    ['a layer that the host had', ['a Already exists', 'b Downloading 1/5'], [2, 1, 5]],
    ['a layer that starts again', ['a Downloading 9/10', 'a Retrying in 5 seconds', 'a Downloading 1/10'], [1, 1, 10]],
    ['a layer that resumes', ['a Downloading 9/10', 'a Retrying in 5 seconds'], [1, 9, 10]],
    ['a size that the engine does not know', ['a Downloading 3/-1'], [1, 0, null]],
    ['amounts that are no bytes', ['a Downloading -1/10', 'b Downloading 1.5/10'], [2, 1, 20]],
    ['a registry that sends more than it said', ['a Downloading 12/10'], [1, 10, 10]],
  ];
  for (const [name, lines, expected] of rows) {
    const [layers, bytes, total] = expected ?? [];
    t.same(said(...lines).progress, expected && { layers, bytes, total }, name);
  }
  t.end();
});

t.test('a line that repeats is no progress', (t) => {
  t.same(said('a Downloading 3/10', 'a Downloading 3/10', 'a Downloading 4/10', 'a Extracting 4/10').news, [
    true,
    false,
    true,
    true,
  ]);
  t.same(said('1 Pulling from x', '- Status: x').news, [true, true], 'lines about no layer are');
  t.end();
});

t.test('a pull is queued while nothing of it is under way', (t) => {
  for (const [lines, expected] of [
    [[], false],
    [['a Waiting', 'b Waiting'], true],
    [['a Pulling fs layer', 'b Waiting'], false],
    [['a Downloading 1/2', 'b Waiting'], false],
    [['a Pull complete', 'b Already exists', 'c Waiting'], true],
    [['a Pull complete', 'b Already exists'], false],
  ] as const) {
    t.equal(said(...lines).lines.isQueued(), expected, lines.join(', '));
  }
  t.end();
});

t.test('an engine that names more layers than there can be', (t) => {
  const many = Array.from({ length: pullLayers + 5 }, (_, index) => `l${index} Downloading 1/2`);
  const { progress, news } = said(...many);
  t.equal(progress?.layers, pullLayers);
  t.equal(news.filter(Boolean).length, pullLayers);
  t.end();
});
