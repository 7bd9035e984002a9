/** Writes without an answer, resolved by a move of one's own epoch. */
import t from 'tap';
import type { Moved } from '../../../../actors/runtime/store/epoch.ts';
import { Fence, type WentBack } from '../../../../actors/runtime/store/fence.ts';
import type { WriteOutcome } from '../../../../actors/runtime/store/store.ts';

const written: WriteOutcome = { kind: 'written', sequence: 5 };
const fenced: WriteOutcome = { kind: 'fenced' };
const unknown: WriteOutcome = { kind: 'unknown', cause: new Error('no answer') };

/** A fence at revision 1, whose moves are decided by hand. */
function fenceOf() {
  const moves: { readonly from: number; readonly released: boolean; decide(moved: Moved): void }[] = [];
  const counts = { unknown: 0, refused: 0, lost: 0 };
  const wentBack: WentBack[] = [];
  const fence = new Fence({
    revision: 1,
    move: (from, { released }) => new Promise((decide) => void moves.push({ from, released, decide })),
    onUnknown: () => counts.unknown++,
    onRefused: () => counts.refused++,
    onWentBack: (sequences) => void wentBack.push(sequences),
    onLost: () => counts.lost++,
  });
  return { fence, moves, counts, wentBack };
}

/** Gives these outcomes one after the other, and notes the revision of each attempt. */
function attempts(...outcomes: WriteOutcome[]) {
  const at: number[] = [];
  return {
    at,
    attempt: async (revision: number) => {
      at.push(revision);
      return Promise.resolve(outcomes.shift() ?? written);
    },
  };
}

const turn = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

t.test('a write without an answer is written again at the moved epoch', async (t) => {
  const { fence, moves, counts } = fenceOf();
  const { at, attempt } = attempts(unknown, written);
  const outcome = fence.write(attempt);
  await turn();
  t.same(at, [1], 'not before the epoch has moved');
  t.match(moves, [{ from: 1, released: false }]);
  moves[0]?.decide({ kind: 'moved', epoch: 7 });
  t.same(await outcome, written);
  t.same(at, [1, 7]);
  t.equal(fence.revision, 7);
  t.same(counts, { unknown: 1, refused: 0, lost: 0 });
});

t.test('writes that the own move refuses are written again, and those that come wait for it', async (t) => {
  const { fence, moves, counts } = fenceOf();
  let land: (outcome: WriteOutcome) => void = () => {};
  const slow: number[] = [];
  const checkpoint = fence.write((revision) => {
    slow.push(revision);
    return slow.length === 1 ? new Promise((resolve) => (land = resolve)) : Promise.resolve(written);
  });
  const { at, attempt } = attempts(unknown);
  const commit = fence.write(attempt);
  await turn();
  const later = attempts();
  const next = fence.write(later.attempt);
  // The server has moved the epoch; its answer is still on the way.
  land(fenced);
  await turn();
  t.same([slow, later.at], [[1], []]);
  moves[0]?.decide({ kind: 'moved', epoch: 2 });
  t.same(await Promise.all([checkpoint, commit, next]), [written, written, written]);
  t.same([slow, at, later.at], [[1, 2], [1, 2], [2]]);
  t.equal(moves.length, 1);
  t.equal(counts.lost, 0);
});

t.test('a refused write, or a refused move, means that another process has the partition', async (t) => {
  const refused = fenceOf();
  t.same(await refused.fence.write(attempts(fenced).attempt), { kind: 'lost' });
  t.same(refused.counts, { unknown: 0, refused: 0, lost: 1 });
  t.same(refused.moves, []);

  const moved = fenceOf();
  const { at, attempt } = attempts(unknown);
  const outcome = moved.fence.write(attempt);
  await turn();
  moved.moves[0]?.decide({ kind: 'refused' });
  t.same(await outcome, { kind: 'lost' });
  t.same(at, [1]);
  t.same(moved.counts, { unknown: 1, refused: 0, lost: 1 });
  t.same(await moved.fence.write(attempts().attempt), { kind: 'lost' }, 'nothing is written any more');
  t.equal(moved.counts.lost, 1);
});

t.test('a write that is larger than the server takes is not repeated without end', async (t) => {
  const { fence, moves, counts } = fenceOf();
  const { at, attempt } = attempts({ kind: 'refused', cause: new Error('max_payload size exceeded') });
  t.same(await fence.write(attempt), { kind: 'lost' });
  t.same([at, moves], [[1], []]);
  t.same(counts, { unknown: 0, refused: 1, lost: 1 });
});

t.test('a release comes after the move under way, and ends all writes', async (t) => {
  const { fence, moves, counts } = fenceOf();
  const { at, attempt } = attempts(unknown);
  const outcome = fence.write(attempt);
  await turn();
  const released = fence.release();
  await turn();
  t.equal(moves.length, 1);
  moves[0]?.decide({ kind: 'moved', epoch: 2 });
  await turn();
  t.match(moves[1], { from: 2, released: true });
  moves[1]?.decide({ kind: 'moved', epoch: 3 });
  await released;
  t.same(await outcome, { kind: 'lost' });
  t.same(at, [1], 'nothing is written into a partition that is released');
  t.equal(counts.lost, 0);
});

t.test('a closed fence loses its writes silently', async (t) => {
  const { fence, counts } = fenceOf();
  fence.close();
  const { at, attempt } = attempts();
  t.same(await fence.write(attempt), { kind: 'lost' });
  t.same(at, []);
  t.equal(counts.lost, 0);
});

t.test('the sequence is that of the attempt that was written', async (t) => {
  const { fence, moves } = fenceOf();
  t.match(await fence.write(attempts({ kind: 'written', sequence: 11 }).attempt), { sequence: 11 });
  const outcome = fence.write(attempts(unknown, { kind: 'written', sequence: 14 }).attempt);
  await turn();
  moves[0]?.decide({ kind: 'moved', epoch: 13 });
  t.same(await outcome, { kind: 'written', sequence: 14 });
});

t.test('an acknowledgement that is not above those before it shows that the store went back', async (t) => {
  const { fence, moves, wentBack } = fenceOf();
  const at = (sequence: number, first?: number): WriteOutcome => ({
    kind: 'written',
    sequence,
    ...(first === undefined ? {} : { first }),
  });
  const write = async (outcome: WriteOutcome) => fence.write(attempts(outcome).attempt);
  await write(at(12));
  await write(at(0));
  await write(at(20, 13));
  t.same(wentBack, [], 'it grows; an empty batch has no sequence');
  t.same(await write(at(20)), at(20), 'the write itself is there');
  t.same(wentBack.splice(0), [{ seen: 20, got: 20 }]);
  await write(at(21));
  t.same(wentBack, [], 'from there on, sequences grow again');
  await write(at(30, 19));
  t.same(wentBack.splice(0), [{ seen: 21, got: 19 }], 'a batch ends above them and begins below');
  const moved = write(unknown);
  await turn();
  moves[0]?.decide({ kind: 'moved', epoch: 3 });
  t.match(await moved, { kind: 'written' });
  t.same(wentBack.splice(0), [{ seen: 30, got: 3 }], 'a move shows it too');

  const other = fenceOf();
  let land: (outcome: WriteOutcome) => void = () => {};
  const first = other.fence.write(async () => new Promise((resolve) => (land = resolve)));
  await other.fence.write(attempts(at(8)).attempt);
  land(at(7));
  await first;
  t.same(other.wentBack, [], 'two writes that were under way at once');
});
