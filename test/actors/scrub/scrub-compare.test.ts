/** Reads of replicas, held against one another. */
import t from 'tap';
import { agree, compareReads, endOf, isConclusive, type ReplicaRead } from '../../../actors/scrub/scrub-compare.ts';

/** `A 1a 2b 5e ..` is what A answered: its messages, and whether there is more behind the last. */
function readOf(text: string): ReplicaRead {
  const [server = '', ...words] = text.split(' ');
  const messages = words.filter((word) => word !== '..');
  const held = new Map(messages.map((word) => [parseInt(word), word.replace(/^\d+/, '')]));
  return { server, held, to: words.includes('..') ? Math.max(...held.keys()) : Infinity };
}

const findings = (...texts: string[]): string[] =>
  compareReads(texts.map(readOf)).map(({ sequence, server, what }) => `${server} ${sequence} ${what}`);

t.test('differences that are found', async (t) => {
  const cases: [string, string[], string[]][] = [
    ['nothing where all hold the same', ['A 1a 2b', 'B 1a 2b', 'C 1a 2b', 'A 1a 2b'], []],
    [
      'a message that one lacks and two hold',
      ['A 1a 2b', 'B 1a', 'C 1a 2b', 'A 1a 2b', 'B 1a', 'C 1a 2b'],
      ['B 2 missing'],
    ],
    ['a message that one holds and two lack', ['A 1a 2b', 'B 1a', 'C 1a', 'A 1a 2b', 'B 1a', 'C 1a'], ['A 2 extra']],
    ['other bytes in one of three', ['A 1a', 'B 1x', 'C 1a'], ['B 1 different']],
    [
      'all three where no two hold the same',
      ['A 1a', 'B 1x', 'C 1y'],
      ['A 1 different', 'B 1 different', 'C 1 different'],
    ],
    ['both of two', ['A 1a', 'B 1x'], ['A 1 different', 'B 1 different']],
    ['both of two, one of which lacks it', ['A 1a 2b', 'B 2b', 'A 1a 2b'], ['A 1 extra', 'B 1 missing']],
    [
      'a message before others, and one after them',
      ['A 1a 2b 3c', 'B 2b', 'C 1a 2b 3c', 'A 1a 2b 3c', 'B 2b'],
      ['B 1 missing', 'B 3 missing'],
    ],
  ];
  for (const [name, reads, expected] of cases) t.same(findings(...reads).sort(), expected, name);
});

t.test('differences that are none', async (t) => {
  const cases: [string, string[]][] = [
    ['a message that arrived while they were read', ['A 1a', 'B 1a 2b', 'C 1a 2b', 'A 1a 2b']],
    ['a message that was removed meanwhile', ['A 1a 2b', 'B 2b', 'C 2b', 'A 2b']],
    ['one that was read only before it was removed elsewhere', ['A 1a 2b', 'B 2b', 'C 2b', 'B 2b']],
    ['one that a replica had not yet, and then had', ['A 1a 2b', 'B 1a', 'A 1a 2b', 'B 1a 2b', 'A 1a 2b']],
    ['what stands behind the end of a page', ['A 1a 2b ..', 'B 1a 2b 3c ..', 'A 1a 2b ..', 'B 1a 2b 3c ..']],
    ['one replica', ['A 1a', 'A 1a']],
    ['no reads', []],
  ];
  for (const [name, reads] of cases) t.same(findings(...reads), [], name);
});

t.test('reads agree up to where all of them reach', async (t) => {
  const agreeing = (...texts: string[]): boolean => agree(texts.map(readOf));
  t.ok(agreeing('A 1a 2b', 'B 1a 2b', 'C 1a 2b'));
  t.ok(agreeing('A 1a 2b ..', 'B 1a 2b 3c'));
  t.notOk(agreeing('A 1a 2b', 'B 1a 2b 3c'));
  t.notOk(agreeing('A 1a', 'B 1x'));
  t.equal(endOf(['A 1a 2b ..', 'B 1a 2b 3c'].map(readOf)), 2);
  t.equal(endOf([readOf('A 1a')]), Infinity);
});

t.test('reads are enough when each was read between two of each other', async (t) => {
  const conclusive = (order: string, servers: string): boolean =>
    isConclusive(
      [...order].map((server) => readOf(`${server} 1a`)),
      [...servers],
    );
  t.ok(conclusive('ABCABC', 'ABC'));
  t.ok(conclusive('ABAB', 'AB'));
  t.notOk(conclusive('ABA', 'AB'));
  t.notOk(conclusive('ABCAB', 'ABC'));
  t.notOk(conclusive('AABBCC', 'ABC'));
});
