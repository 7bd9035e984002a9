import t from 'tap';
import { ApiError, ConnectionError, InterruptedError } from '../../../cli/client/errors.ts';
import { codeOf, Exit, Refused, wordsOf, WrongUsage } from '../../../cli/terminal/errors.ts';

const answer = (status: number, body: unknown, headers: Record<string, string> = {}): ApiError =>
  new ApiError({ status, headers: new Headers(headers) }, body);

t.test('an error says what is wrong, and what to do', (t) => {
  t.match(
    wordsOf(answer(401, { error: 'unauthenticated' })),
    /^unauthenticated\nSign in with "longshore login .*LONGSHORE_TOKEN/,
  );
  t.equal(
    wordsOf(answer(403, { error: 'forbidden', detail: { scope: 'deploy' } })),
    'forbidden\nThe token lacks the scope deploy.',
  );
  t.match(
    wordsOf(answer(403, { error: 'over_quota', detail: { dimension: 'cpu_millis', requested: 9000, max: 8000 } })),
    /^over quota\ncpu_millis would be 9 cores of 8 cores\. See "longshore quota"/,
  );
  t.match(wordsOf(answer(404, { error: 'not_found' })), /^not found\nNothing has this name or id: "ls"/);
  t.match(
    wordsOf(answer(422, { error: 'invalid', details: { name: ['has already been taken'] } })),
    /^name has already been taken\nChoose another name/,
  );
  t.equal(wordsOf(answer(422, { error: 'invalid', details: { name: ["can't be blank"] } })), "name can't be blank");
  t.equal(
    wordsOf(answer(422, { error: 'invalid', details: { name: ['one', 'two'], tag: ['three'] } })),
    'the request is invalid:\n  name: one, two\n  tag: three',
  );
  t.match(
    wordsOf(answer(503, { error: 'unavailable' }, { 'x-request-id': 'r-1' })),
    /^unavailable \(request r-1\)\nTry again soon/,
  );
  t.match(wordsOf(answer(502, '<html>')), /not as Longshore does: <html>/);
  t.match(
    wordsOf(new ConnectionError('http://h', new Error('ECONNREFUSED'))),
    /http:\/\/h can't be reached: ECONNREFUSED\n/,
  );
  t.end();
});

t.test('exit codes', (t) => {
  t.same(
    [answer(404, {}), new Refused('no'), new WrongUsage('no'), new InterruptedError(), new Exit(7), 'text'].map(codeOf),
    [1, 1, 2, 130, 7, 1],
  );
  t.end();
});
